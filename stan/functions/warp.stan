/**
 * Transformation T of the targets, see warped, that compresses large values and stretches small
 * ones. It maps the real line onto itself, T(0) = 0, T'(0) = 1, its second derivative is
 * continuous, and it tends to the identity as its parameter a > 0 tends to 0. The targets are a
 * Gaussian process after the transformation.
 */

/**
 * Transformed targets:
 *
 *   T(y) = log(1 + a y) / a          for y >= 0,
 *   T(y) = (1 - exp(-a y)) / a       for y < 0.
 *
 * @param y targets; N
 * @param a warp; 0 or 1 entries, none for the identity
 * @return T(y); N
 */
vector warped(vector y, vector a) {
  if (size(a) == 0) {
    return y;
  }
  vector[size(y)] t;
  for (i in 1 : size(y)) {
    t[i] = (y[i] < 0 ? -expm1(-a[1] * y[i]) : log1p(a[1] * y[i])) / a[1];
  }
  return t;
}

/**
 * Inverse of warped:
 *
 *   T^-1(t) = -T(-t).
 *
 * @param t transformed targets; N
 * @param a warp; 0 or 1 entries, none for the identity
 * @return T^-1(t); N
 */
vector unwarped(vector t, vector a) {
  return -warped(-t, a);
}

/**
 * Logarithm of the slope of the transformation: the Jacobian of a density of targets.
 *
 *   log T'(y) = -log(1 + a y)        for y >= 0,
 *   log T'(y) = -a y                 for y < 0.
 *
 * @param y targets; N
 * @param a warp; 0 or 1 entries, none for the identity
 * @return log T'(y); N
 */
vector log_warp_slope(vector y, vector a) {
  vector[size(y)] slope = rep_vector(0, size(y));
  if (size(a)) {
    for (i in 1 : size(y)) {
      slope[i] = y[i] < 0 ? -a[1] * y[i] : -log1p(a[1] * y[i]);
    }
  }
  return slope;
}

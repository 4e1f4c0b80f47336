/**
 * Transformation T of the targets, see warped, that compresses large values and stretches small
 * ones. It maps the real line onto itself, T(0) = 0, and it tends to the identity as its parameter
 * a > 0 tends to 0. The targets are a Gaussian process after the transformation.
 */

/**
 * Scale of the transformation with a pivot, S. The range of 4 from the pivot keeps its length:
 *
 *   S = 4 / log(1 + 4 a)
 *
 * @param a warp
 * @return S
 */
real warp_range(real a) {
  return 4 / log1p(4 * a);
}

/**
 * Transformed targets. Without a pivot, T'(0) = 1 and the second derivative is continuous:
 *
 *   T(y) = log(1 + a y) / a                                for y >= 0,
 *   T(y) = (1 - exp(-a y)) / a                             for y < 0.
 *
 * With the pivot b <= 0, T is linear below it, and its first derivative is continuous:
 *
 *   T(y) = S (log(1 + a (y - b)) - log(1 - a b))           for y >= b,   S = 4 / log(1 + 4 a),
 *   T(y) = S (a (y - b) - log(1 - a b))                    for y < b.
 *
 * @param y targets; N
 * @param a no entries for the identity, or warp, or warp and pivot
 * @return T(y); N
 */
vector warped(vector y, vector a) {
  if (size(a) == 0) {
    return y;
  }
  vector[size(y)] t;
  if (size(a) == 2) {
    for (i in 1 : size(y)) {
      real v = a[1] * (y[i] - a[2]);
      t[i] = (v < 0 ? v : log1p(v)) - log1p(-a[1] * a[2]);
    }
    return warp_range(a[1]) * t;
  }
  for (i in 1 : size(y)) {
    t[i] = (y[i] < 0 ? -expm1(-a[1] * y[i]) : log1p(a[1] * y[i])) / a[1];
  }
  return t;
}

/**
 * Inverse of warped. Without a pivot:
 *
 *   T^-1(t) = -T(-t).
 *
 * @param t transformed targets; N
 * @param a see warped
 * @return T^-1(t); N
 */
vector unwarped(vector t, vector a) {
  if (size(a) < 2) {
    return -warped(-t, a);
  }
  vector[size(t)] y;
  for (i in 1 : size(t)) {
    real x = t[i] / warp_range(a[1]) + log1p(-a[1] * a[2]);
    y[i] = a[2] + (x < 0 ? x : expm1(x)) / a[1];
  }
  return y;
}

/**
 * Logarithm of the slope of the transformation, a factor of the density of a target.
 *
 *   log T'(y) = -log(1 + a y)                              for y >= 0,
 *   log T'(y) = -a y                                       for y < 0;
 *
 * with the pivot b:
 *
 *   log T'(y) = log(S a) - log(1 + a max(y - b, 0)).
 *
 * @param y targets; N
 * @param a see warped
 * @return log T'(y); N
 */
vector log_warp_slope(vector y, vector a) {
  vector[size(y)] slope = rep_vector(0, size(y));
  if (size(a) == 2) {
    for (i in 1 : size(y)) {
      slope[i] = log(warp_range(a[1]) * a[1]) - log1p(a[1] * fmax(y[i] - a[2], 0));
    }
  } else if (size(a)) {
    for (i in 1 : size(y)) {
      slope[i] = y[i] < 0 ? -a[1] * y[i] : -log1p(a[1] * y[i]);
    }
  }
  return slope;
}

/**
 * Logarithm of the Jacobian of a density of targets, of which k equal the pivot:
 *
 *   sum_i log T'(y_i) - max(k - 1, 0) log(S a).
 *
 * Of the targets at the pivot only one counts: the slope there, S a, grows with a, and equal targets say
 * nothing more about the scale of values near the best one.
 *
 * @param y targets; N
 * @param a see warped
 * @return log |dT / dy|
 */
real log_jacobian_of_warp(vector y, vector a) {
  real total = sum(log_warp_slope(y, a));
  if (size(a) == 2) {
    int at_pivot = 0;
    for (i in 1 : size(y)) {
      at_pivot += y[i] == a[2];
    }
    if (at_pivot > 1) {
      total -= (at_pivot - 1) * log(warp_range(a[1]) * a[1]);
    }
  }
  return total;
}

/**
 * Matern correlation of half-integer order nu = p + 1/2 (Rasmussen & Williams 2006, eq. 4.16), as a
 * function of the squared scaled distance h:
 *
 *   d = sqrt(2 nu h),
 *   M_p(d) = exp(-d) p!/(2p)! sum_{k=0}^p (p + k)! / (k! (p - k)!) (2 d)^(p - k).
 *
 * Horner's rule evaluates the sum as
 *
 *   1 + a_0 d (1 + a_1 d (1 + ...)),   a_j = 2 (p - j) / ((2 p - j) (j + 1)),   a_0 = 1.
 *
 * Each term is multiplied by exp(-d), starting with the innermost, so that nothing overflows at any
 * distance.
 *
 * sqrt has no derivative at 0. Adding 1e-300 under the root changes no value (it is below half a
 * unit in the last place of any squared distance above 1e-284). The derivative at coinciding points
 * becomes a large finite number times a difference that is exactly 0.
 *
 * @param h squared distances, divided by the squared length-scale; n_pairs
 * @param p order, >= 0; nu = p + 1/2
 * @return correlations; n_pairs
 */
vector matern(vector h, data int p) {
  vector[size(h)] d = sqrt((2 * p + 1) * h + 1e-300);
  vector[size(h)] e = exp(-d);
  vector[size(h)] k = e;
  for (i in 1 : (p - 1)) {
    int j = p - i;
    k = fma((2.0 * (p - j) / ((2 * p - j) * (j + 1))) * d, k, e);
  }
  if (p > 0) {
    k = fma(d, k, e);
  }
  return k;
}

/**
 * Matern covariance with one length-scale per dimension. For M_p see matern.
 *
 *   sigma_f^2 M_p(sqrt((2 p + 1) h)),   h = sum_d (x_d - x~_d)^2 / lengthscale_d^2.
 *
 * @param sq squared differences of the pairs; n_pairs x D
 * @param sigma_f signal standard deviation
 * @param lengthscale length-scales, in the units of the inputs; D
 * @param p order, >= 0
 * @return covariances of the pairs; n_pairs
 */
vector matern_cov(data matrix sq, real sigma_f, vector lengthscale, data int p) {
  return square(sigma_f) * matern(sq * inv_square(lengthscale), p);
}

/**
 * Covariance of a function of all columns plus a sum of functions of one column each, with M_p of
 * matern:
 *
 *   sigma_f^2 (M_p(c |h|) + v / D sum_d M_p(c h_d / r)) / (1 + v),
 *   h_d = (x_d - x~_d) / lengthscale_d,   c = sqrt(2 p + 1).
 *
 * @param sq, sigma_f, lengthscale, p see matern_cov
 * @param main_variance v, variance of the sum relative to the variance of the function of all
 *   columns; 1, or 0 without a sum
 * @param main_ratio r, length-scales of the functions of one column relative to lengthscale; 1 or 0
 * @return covariances of the pairs; n_pairs
 */
vector matern_sum_cov(data matrix sq, real sigma_f, vector lengthscale, data int p,
                      vector main_variance, vector main_ratio) {
  int D = cols(sq);
  vector[rows(sq)] k = matern_cov(sq, sigma_f, lengthscale, p);
  for (r in main_ratio) {
    for (d in 1 : D) {
      k += main_variance[1] / D * matern_cov(sq[ : , {d}], sigma_f, r * lengthscale[{d}], p);
    }
  }
  return k / (1 + sum(main_variance));
}

/**
 * Log density of the observations with the function integrated out; see gp_log_marginal:
 *
 *   log N(T(y) | mu, K + S) + sum_i log T'(y_i),   K_ij = k(x_i, x_j),
 *
 * with the covariance k of matern_sum_cov.
 *
 * @param observed, sigma_n see noise_variance
 * @param warp see warped
 * @param mu constant mean
 * @param sq squared differences of the pairs of lower_triangle(N); n_pairs x D
 * @param sigma_f, lengthscale, p, main_variance, main_ratio see matern_sum_cov
 * @return log density
 */
real matern_log_marginal(data tuple(vector, vector, real, int) observed, vector warp, real mu,
                         real sigma_n, data matrix sq, real sigma_f, vector lengthscale,
                         data int p, vector main_variance, vector main_ratio) {
  vector[rows(sq)] k = matern_sum_cov(sq, sigma_f, lengthscale, p, main_variance, main_ratio);
  return gp_log_marginal(observed, warp, mu, k, rep_vector(square(sigma_f), size(observed.1)),
                         sigma_n);
}

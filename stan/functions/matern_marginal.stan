/**
 * Log density of the observations with the function integrated out; see gp_log_marginal.
 *
 * @param y observations; N
 * @param warp parameter of T, see warped
 * @param mu constant mean
 * @param sigma_n noise standard deviation
 * @param sq squared differences of the pairs of lower_triangle(N); n_pairs x D
 * @param sigma_f, lengthscale, p see matern_cov
 * @return log density
 */
real matern_log_marginal(data vector y, vector warp, real mu, real sigma_n, data matrix sq,
                         real sigma_f, vector lengthscale, data int p) {
  vector[rows(sq)] k = matern_cov(sq, sigma_f, lengthscale, p);
  return gp_log_marginal(y, warp, mu, k, rep_vector(square(sigma_f), size(y)), sigma_n);
}

/**
 * Log density of the observations, the function integrated out:
 * log N(y | mu, K + sigma_n^2 I).
 *
 * @param y observations; N
 * @param mu constant mean
 * @param sigma_n noise standard deviation
 * @param sq squared differences of all pairs of lower_triangle(N)
 * @param ... hyperparameters and structure, see matern_cov
 * @return log density
 */
real matern_log_marginal(data vector y, real mu, real sigma_n,
                         data matrix sq, real sigma_f, vector lengthscale,
                         data int p) {
  int N = size(y);
  return multi_normal_cholesky_lpdf(y | rep_vector(mu, N), gp_factor(matern_cov(
                                                                    sq,
                                                                    sigma_f,
                                                                    lengthscale,
                                                                    p),
                                                                    rep_vector(
                                                                    square(
                                                                    sigma_f),
                                                                    N),
                                                                    sigma_n));
}

/**
 * Log density of the observations, the function integrated out:
 * log N(y | mu, K + sigma_n^2 I).
 *
 * @param y observations; N
 * @param mu constant mean
 * @param sigma_n noise standard deviation
 * @param features, W of all pairs of triangle_and_diagonal(N)
 * @param ... hyperparameters and structure, see fm_cov
 * @return log density
 */
real fm_log_marginal(data vector y, real mu, real sigma_n,
                     data array[] matrix features, data matrix W,
                     real sigma_f, vector lengthscale, vector alpha,
                     vector beta, vector weights, vector bias, vector gamma,
                     vector rho, vector rq_alpha, data vector lambda,
                     data array[] int graph_of, data matrix lineage,
                     data int modulator, data int combine, data real tau,
                     data int base, data int p, data int add) {
  int N = size(y);
  vector[rows(W)] k = fm_cov(features, W, sigma_f, lengthscale, alpha, beta,
                             weights, bias, gamma, rho, rq_alpha, lambda,
                             graph_of, lineage, modulator, combine, tau,
                             base, p, add);
  return multi_normal_cholesky_lpdf(y | rep_vector(mu, N), gp_factor(head(
                                                                    k,
                                                                    rows(
                                                                    W) - N),
                                                                    tail(
                                                                    k, N),
                                                                    sigma_n));
}

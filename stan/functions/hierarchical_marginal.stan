/**
 * Log density of the observations, the function integrated out:
 * log N(y | mu, K + sigma_n^2 I).
 *
 * @param y observations; N
 * @param mu constant mean
 * @param sigma_n noise standard deviation
 * @param features of all pairs of lower_triangle(N)
 * @param ... hyperparameters and structure, see hierarchical
 * @return log density
 */
real hierarchical_log_marginal(data vector y, real mu, real sigma_n,
                               data array[] matrix features, real sigma_f,
                               vector gamma, vector rho, vector lengthscale,
                               vector rq_alpha, data array[] int levels,
                               data matrix lineage, data int base,
                               data int p, data int add) {
  int N = size(y);
  real variance = (add ? size(rho) : 1) * square(sigma_f);
  vector[rows(features[1])] k = square(sigma_f)
                                * hierarchical(features, levels, lineage,
                                               gamma, rho, lengthscale,
                                               rq_alpha, base, p, add);
  return multi_normal_cholesky_lpdf(y | rep_vector(mu, N), gp_factor(k,
                                                                    rep_vector(
                                                                    variance,
                                                                    N),
                                                                    sigma_n));
}

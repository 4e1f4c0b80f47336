// Compute the outputs from prior covariances of the function, which the program defines: k and
// variance at the observed points (lower_triangle(N); N), cross between observed and new points
// (rectangle(N, M)), k_new and variance_new at the new points (lower_triangle(M_cov); M).
tuple(vector[N], vector[N]) targets = gp_targets(observed, append_row(
                                                 warp, warp_pivot), sigma_n, mu, k, variance);
matrix[N, N] factor = gp_factor(k, variance + targets.2);
matrix[N, M] V = gp_solve(factor, cross, M, prior_only);
if (want_pointwise || density_by_ep) {
  tuple(vector[N], vector[N]) others = gp_leave_one_out(gp_precision(factor), targets.1, mu);
  if (density_by_ep) {
    log_density[1] += probit_log_evidence(y, mu, targets, factor, others)
                      - probit_log_marginal(y, mu, k, variance);
  }
  if (want_pointwise) {
    if (binary) {
      others = probit_leave_one_out(others, targets.2);
      log_lik = probit_log_lik(y, others);
      // Without observations: signs of the function plus standard-normal noise.
      y_rep = signs(gp_replicate_rng(prior_only ? gp_factor(k, variance + 1) : factor, mu, others,
                                     prior_only));
    } else {
      log_lik = gp_log_lik(targets.1, others) + log_warp_slope(y, append_row(warp, warp_pivot));
      y_rep = unwarped(gp_replicate_rng(factor, mu, others, prior_only),
                       append_row(warp, warp_pivot));
    }
  }
}
f_mean = gp_mean(V, factor, targets.1 - mu, mu);
f_sd = gp_sd(V, variance_new);
if (want_cov) {
  f_cov = gp_cov(V, symmetric_matrix(k_new, variance_new));
}

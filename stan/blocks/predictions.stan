// Compute the outputs from prior covariances of the function, which the program defines: k and
// variance at the observed points (lower_triangle(N); N), cross between observed and new points
// (rectangle(N, M)), k_new and variance_new at the new points (lower_triangle(M_cov); M).
vector[N] t = warped(y, warp);
matrix[N, N] L = gp_factor(k, variance, sigma_n);
matrix[N, M] V = gp_solve(L, cross, M, prior_only);
if (want_pointwise) {
  tuple(vector[N], vector[N]) others = gp_leave_one_out(gp_precision(L), t, mu);
  log_lik = gp_log_lik(t, others) + log_warp_slope(y, warp);
  y_rep = unwarped(gp_replicate_rng(L, mu, others, prior_only), warp);
}
f_mean = gp_mean(V, L, t - mu, mu);
f_sd = gp_sd(V, variance_new);
if (want_cov) {
  f_cov = gp_cov(V, symmetric_matrix(k_new, variance_new));
}

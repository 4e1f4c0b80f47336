// The variance of an error after the warp would depend on y, and the density would not integrate to one.
if (n_warp && max(y_sd) > 0) {
  reject("y_sd is above 0 for an observation, and n_warp is 1; use n_warp = 0, or y_sd = 0");
}
tuple(vector[N], vector[N], real, int) observed = (y, y_sd, noise_floor, binary);
int n_pairs = (N * (N - 1)) %/% 2; // pairs of lower_triangle(N)
int N_pointwise = want_pointwise ? N : 0; // entries of log_lik and y_rep
int density_by_ep = want_density && binary && !prior_only; // 1: predictions.stan corrects log_density
int M_cov = want_cov ? M : 0; // rows of f_cov
int n_pairs_new = (M_cov * (M_cov - 1)) %/% 2; // pairs of lower_triangle(M_cov)

tuple(vector[N], vector[N], real, int) observed = (y, y_sd, noise_floor, binary);
check_targets(observed, n_warp);
int n_pairs = (N * (N - 1)) %/% 2; // pairs of lower_triangle(N)
int N_pointwise = want_pointwise ? N : 0; // entries of log_lik and y_rep
int density_by_ep = want_density && binary && !prior_only; // 1: predictions.stan corrects log_density
int M_cov = want_cov ? M : 0; // rows of f_cov
int n_pairs_new = (M_cov * (M_cov - 1)) %/% 2; // pairs of lower_triangle(M_cov)

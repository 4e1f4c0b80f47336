/**
 * Fully Bayesian Gaussian process on a conditional space: parameters that are
 * active only for some values of others (Hutter & Osborne 2013).
 *
 *   y ~ Normal(mu, K + sigma_n^2 I),
 *   K_ij = sigma_f^2 (product or sum over dimensions of a base kernel of the
 *          hierarchical distance)
 *
 * The prior of the signal standard deviation is one of the function, whose
 * variance under a sum over D dimensions is D sigma_f^2.
 */
functions {
  #include functions/distances.stan
  #include functions/matern.stan
  
  #include functions/base_kernels.stan
  
  #include functions/hierarchical.stan
  
  #include functions/gp_posterior.stan
  #include functions/hierarchical_marginal.stan
  
  #include functions/priors.stan
  #include functions/coordinates.stan
}
data {
  int<lower=0> N; // observations
  int<lower=0> D; // dimensions
  matrix[N, D] X; // real: in [0, 1]; categorical: index of the level
  matrix<lower=0, upper=1>[N, D] active; // 1 where the dimension has a value
  vector[N] y; // targets, standardised
  array[D] int<lower=0> levels; // number of levels, 0 for a real dimension
  matrix<lower=0, upper=1>[D, D] lineage; // [i, j]: j is i or its ancestor
  int<lower=1, upper=3> base; // 1 squared-exponential, 2 rational quadratic, 3 Matern
  int<lower=0> p; // Matern order, nu = p + 1/2
  int<lower=0, upper=1> add; // combine dimensions by 0 product, 1 sum
  
  int<lower=0> M; // new points
  matrix[M, D] X_new; // as X
  matrix<lower=0, upper=1>[M, D] active_new; // as active
  int<lower=0, upper=1> want_cov; // 1: also the M x M covariance f_cov
  int<lower=0, upper=1> prior_only; // 1: skip the likelihood
  int<lower=0, upper=1> of_scores; // 1: density of the scores, for a mode
  
  real mu_location; // mu ~ Normal(location, scale), in units of y
  real<lower=0> mu_scale;
  real sigma_f_location; // signal sd ~ LogNormal(location, scale)
  real<lower=0> sigma_f_scale;
  real sigma_n_location; // sigma_n ~ LogNormal(location, scale)
  real<lower=0> sigma_n_scale;
  vector<lower=0>[D] gamma_a; // gamma ~ Beta(a, b)
  vector<lower=0>[D] gamma_b;
  vector<lower=0>[D] rho_a; // rho ~ Beta(a, b)
  vector<lower=0>[D] rho_b;
  vector[D] lengthscale_location; // lengthscale ~ LogNormal(location, scale)
  vector<lower=0>[D] lengthscale_scale;
  vector[base == RATIONAL_QUADRATIC()] rq_alpha_location; // rq_alpha ~ LogNormal(location, scale)
  vector<lower=0>[base == RATIONAL_QUADRATIC()] rq_alpha_scale;
}
transformed data {
  int n_theta = 3 + 3 * D + size(rq_alpha_location);
  int n_pairs = (N * (N - 1)) %/% 2;
  real variance = add ? D : 1; // of the function, in units of sigma_f^2
  array[3] matrix[n_pairs, D] features;
  features = hierarchical_features(X, active, X, active, levels,
                                   lower_triangle(N));
}
parameters {
  real z_mu;
  real z_sigma_f;
  real z_sigma_n;
  vector[D] z_gamma;
  vector[D] z_rho;
  vector[D] z_lengthscale;
  vector[base == RATIONAL_QUADRATIC()] z_rq_alpha;
}
transformed parameters {
  real mu = mu_location + mu_scale * z_mu;
  real<lower=0> sigma_f = log_normal(z_sigma_f, sigma_f_location,
                                     sigma_f_scale)
                          / sqrt(variance);
  real<lower=0> sigma_n = log_normal(noise_score(z_sigma_n, sigma_n_location,
                                                 sigma_n_scale, N),
                                     sigma_n_location, sigma_n_scale);
  vector<lower=0, upper=1>[D] gamma = inv_logit(z_gamma);
  vector<lower=0, upper=1>[D] rho = inv_logit(z_rho);
  vector<lower=0>[D] lengthscale = log_normal(lengthscale_score(z_lengthscale,
                                                                lengthscale_location,
                                                                lengthscale_scale,
                                                                N),
                                              lengthscale_location,
                                              lengthscale_scale);
  vector<lower=0>[base == RATIONAL_QUADRATIC()] rq_alpha = log_normal(z_rq_alpha,
                                                                    rq_alpha_location,
                                                                    rq_alpha_scale);
}
model {
  z_mu ~ std_normal();
  z_sigma_f ~ std_normal();
  z_sigma_n ~ noise_coordinate(sigma_n_location, sigma_n_scale, N, of_scores);
  z_gamma ~ logit_beta(gamma_a, gamma_b);
  z_rho ~ logit_beta(rho_a, rho_b);
  z_lengthscale ~ lengthscale_coordinate(lengthscale_location,
                                         lengthscale_scale, N, of_scores);
  z_rq_alpha ~ std_normal();
  
  if (!prior_only) {
    target += hierarchical_log_marginal(y, mu, sigma_n, features, sigma_f,
                                        gamma, rho, lengthscale, rq_alpha,
                                        levels, lineage, base, p, add);
  }
}
generated quantities {
  // Transformed parameters once more: CmdStan's generate_quantities leaves them out.
  vector[n_theta] theta = stack(stack([mu, sigma_f, sigma_n]', gamma, rho),
                                lengthscale, rq_alpha);
  vector[N] log_lik; // log p(y_i | y_-i, hyperparameters)
  vector[N] y_rep; // y_i replicated given y_-i; all at once if prior_only
  vector[M] f_mean; // latent function at X_new: mean,
  vector[M] f_sd; // standard deviation,
  matrix[want_cov ? M : 0, want_cov ? M : 0] f_cov; // and covariance
  {
    vector[n_pairs] k = square(sigma_f)
                        * hierarchical(features, levels, lineage, gamma, rho,
                                       lengthscale, rq_alpha, base, p, add);
    vector[N * M] cross = square(sigma_f)
                          * hierarchical(hierarchical_features(X, active,
                                                               X_new,
                                                               active_new,
                                                               levels,
                                                               rectangle(
                                                               N, M)),
                                         levels, lineage, gamma, rho,
                                         lengthscale, rq_alpha, base, p, add);
    vector[M] variance_new = rep_vector(variance * square(sigma_f), M);
    matrix[N, N] L = gp_factor(k, rep_vector(variance * square(sigma_f), N),
                               sigma_n);
    matrix[N, M] V = gp_solve(L, cross, M, prior_only);
    tuple(vector[N], vector[N]) others = gp_leave_one_out(gp_precision(
                                                          L), y, mu);
    log_lik = gp_log_lik(y, others);
    y_rep = gp_replicate_rng(L, mu, others, prior_only);
    f_mean = gp_mean(V, L, y - mu, mu);
    f_sd = gp_sd(V, variance_new);
    if (want_cov) {
      vector[(M * (M - 1)) %/% 2] k_new = square(sigma_f)
                                          * hierarchical(hierarchical_features(
                                                         X_new, active_new,
                                                         X_new, active_new,
                                                         levels,
                                                         lower_triangle(
                                                         M)), levels,
                                                         lineage, gamma, rho,
                                                         lengthscale,
                                                         rq_alpha, base, p,
                                                         add);
      f_cov = gp_cov(V, symmetric_matrix(k_new, variance_new));
    }
  }
}

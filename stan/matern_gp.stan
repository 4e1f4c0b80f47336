/**
 * Fully Bayesian Gaussian process with a Matern kernel of half-integer order,
 * one length-scale per dimension, a constant mean and Gaussian noise.
 *
 *   y ~ Normal(mu, K + sigma_n^2 I),   K_ij = matern(x_i, x_j)
 *
 * Generated quantities hold the exact leave-one-out log densities (log_lik),
 * replicated observations (y_rep) and the latent function at new points.
 */
functions {
  #include functions/distances.stan
  #include functions/matern.stan
  
  #include functions/gp_posterior.stan
  #include functions/matern_marginal.stan
  
  #include functions/priors.stan
  #include functions/coordinates.stan
}
data {
  int<lower=0> N; // observations
  int<lower=0> D; // input columns
  matrix[N, D] X; // inputs, each column scaled to [0, 1]
  vector[N] y; // targets, standardised
  int<lower=0> p; // Matern order, nu = p + 1/2
  
  int<lower=0> M; // new points
  matrix[M, D] X_new; // new inputs, scaled as X
  int<lower=0, upper=1> want_cov; // 1: also the M x M covariance f_cov
  int<lower=0, upper=1> prior_only; // 1: skip the likelihood
  int<lower=0, upper=1> of_scores; // 1: density of the scores, for a mode
  
  real mu_location; // mu ~ Normal(location, scale), in units of y
  real<lower=0> mu_scale;
  real sigma_f_location; // sigma_f ~ LogNormal(location, scale)
  real<lower=0> sigma_f_scale;
  real sigma_n_location; // sigma_n ~ LogNormal(location, scale)
  real<lower=0> sigma_n_scale;
  vector[D] lengthscale_location; // lengthscale ~ LogNormal(location, scale)
  vector<lower=0>[D] lengthscale_scale;
}
transformed data {
  matrix[(N * (N - 1)) %/% 2, D] sq = squared_differences(X, X,
                                                          lower_triangle(
                                                          N));
}
parameters {
  real z_mu;
  real z_sigma_f;
  real z_sigma_n;
  vector[D] z_lengthscale;
}
transformed parameters {
  real mu = mu_location + mu_scale * z_mu;
  real<lower=0> sigma_f = log_normal(z_sigma_f, sigma_f_location,
                                     sigma_f_scale);
  real<lower=0> sigma_n = log_normal(noise_score(z_sigma_n, sigma_n_location,
                                                 sigma_n_scale, N),
                                     sigma_n_location, sigma_n_scale);
  vector<lower=0>[D] lengthscale = log_normal(lengthscale_score(z_lengthscale,
                                                                lengthscale_location,
                                                                lengthscale_scale,
                                                                N),
                                              lengthscale_location,
                                              lengthscale_scale);
}
model {
  z_mu ~ std_normal();
  z_sigma_f ~ std_normal();
  z_sigma_n ~ noise_coordinate(sigma_n_location, sigma_n_scale, N, of_scores);
  z_lengthscale ~ lengthscale_coordinate(lengthscale_location,
                                         lengthscale_scale, N, of_scores);
  
  if (!prior_only) {
    target += matern_log_marginal(y, mu, sigma_n, sq, sigma_f, lengthscale,
                                  p);
  }
}
generated quantities {
  // Transformed parameters once more: CmdStan's generate_quantities leaves them out.
  vector[3 + D] theta = append_row([mu, sigma_f, sigma_n]', lengthscale);
  vector[N] log_lik; // log p(y_i | y_-i, hyperparameters)
  vector[N] y_rep; // y_i replicated given y_-i; all at once if prior_only
  vector[M] f_mean; // latent function at X_new: mean,
  vector[M] f_sd; // standard deviation,
  matrix[want_cov ? M : 0, want_cov ? M : 0] f_cov; // and covariance
  {
    matrix[N, N] L = gp_factor(matern_cov(sq, sigma_f, lengthscale, p),
                               rep_vector(square(sigma_f), N), sigma_n);
    vector[N * M] cross = matern_cov(squared_differences(X, X_new,
                                                         rectangle(N, M)),
                                     sigma_f, lengthscale, p);
    vector[M] variance = rep_vector(square(sigma_f), M);
    matrix[N, M] V = gp_solve(L, cross, M, prior_only);
    tuple(vector[N], vector[N]) others = gp_leave_one_out(gp_precision(
                                                          L), y, mu);
    log_lik = gp_log_lik(y, others);
    y_rep = gp_replicate_rng(L, mu, others, prior_only);
    f_mean = gp_mean(V, L, y - mu, mu);
    f_sd = gp_sd(V, variance);
    if (want_cov) {
      matrix[(M * (M - 1)) %/% 2, D] sq_new = squared_differences(X_new,
                                                                  X_new,
                                                                  lower_triangle(
                                                                  M));
      f_cov = gp_cov(V,
                     symmetric_matrix(matern_cov(sq_new, sigma_f,
                                                 lengthscale, p),
                                      variance));
    }
  }
}

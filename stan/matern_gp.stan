/**
 * Fully Bayesian Gaussian process with a Matern kernel of half-integer order, one length-scale per
 * dimension, a constant mean and Gaussian noise. If additive = 1, a kernel of each column alone is
 * added, with a relative variance that is sampled; k is the covariance of matern_sum_cov.
 *
 *   T(y) ~ Normal(mu, K + sigma_n^2 I),   K_ij = k(x_i, x_j)
 *
 * The generated quantities are exact leave-one-out log densities (log_lik), replicated observations
 * (y_rep) and the latent function at new points.
 */
functions {
  #include functions/distances.stan
  #include functions/matern.stan
  
  #include functions/warp.stan
  
  #include functions/probit.stan
  
  #include functions/gp_posterior.stan
  
  #include functions/matern_marginal.stan
  
  #include functions/priors.stan
  
  #include functions/coordinates.stan
}
data {
  #include blocks/data.stan
  
  matrix[N, D] X; // inputs, each column scaled to [0, 1]
  matrix[M, D] X_new; // new inputs, scaled as X
  int<lower=0> p; // Matern order, nu = p + 1/2
  int<lower=0, upper=1> additive; // 1: add a kernel of each column alone
  
  #include blocks/lengthscale_prior.stan
  
  vector[additive] main_variance_location; // main_variance ~ LogNormal(location, scale)
  vector<lower=0>[additive] main_variance_scale;
  matrix[additive, 3] main_variance_gamma;
  vector[additive] main_ratio_location; // main_ratio ~ LogNormal(location, scale)
  vector<lower=0>[additive] main_ratio_scale;
  matrix[additive, 3] main_ratio_gamma;
}
transformed data {
  #include blocks/transformed_data.stan
  
  if (additive && D == 0) {
    reject("additive is 1, and D is 0; use additive = 0");
  }
  matrix[n_pairs, D] sq = squared_differences(X, X, lower_triangle(N));
  matrix[N * M, D] sq_cross = squared_differences(X, X_new, rectangle(N, M));
  matrix[n_pairs_new, D] sq_new = squared_differences(X_new, X_new, lower_triangle(M_cov));
}
parameters {
  real z_mu;
  real z_sigma_f;
  real z_sigma_n;
  vector[n_warp] z_warp;
  vector[D] z_lengthscale;
  vector[additive] z_main_variance;
  vector[additive] z_main_ratio;
}
transformed parameters {
  #include blocks/transformed_parameters.stan
  
  vector<lower=0>[D] lengthscale = log_normal(lengthscale_score(z_lengthscale,
                                                                lengthscale_location,
                                                                lengthscale_scale, N),
                                              lengthscale_location, lengthscale_scale);
  vector<lower=0>[additive] main_variance = log_normal(z_main_variance, main_variance_location,
                                                       main_variance_scale);
  vector<lower=0>[additive] main_ratio = log_normal(z_main_ratio, main_ratio_location,
                                                    main_ratio_scale);
}
model {
  #include blocks/model.stan
  
  z_lengthscale ~ lengthscale_coordinate(lengthscale_location, lengthscale_scale,
                                         lengthscale_gamma, N, omit_jacobian);
  z_main_variance ~ score(main_variance_location, main_variance_scale, main_variance_gamma);
  z_main_ratio ~ score(main_ratio_location, main_ratio_scale, main_ratio_gamma);
  if (!prior_only) {
    target += matern_log_marginal(observed, append_row(warp, warp_pivot), mu, sigma_n, sq, sigma_f,
                                  lengthscale, p, main_variance, main_ratio);
  }
}
generated quantities {
  // Repeats the hyperparameters: CmdStan's generate_quantities omits transformed parameters.
  vector[3 + n_warp + D + 2 * additive] theta = stack(stack([mu, sigma_f, sigma_n]', warp,
                                                            lengthscale),
                                                      main_variance, main_ratio);
  #include blocks/generated_quantities.stan
  
  if (want_density) {
    // The model block once more, without derivatives: CmdStan evaluates many points in one call.
    #include blocks/prior.stan
    
    log_prior += score_lpdf(z_main_variance | main_variance_location, main_variance_scale, main_variance_gamma);
    log_prior += score_lpdf(z_main_ratio | main_ratio_location, main_ratio_scale, main_ratio_gamma);
    log_density[1] = log_prior;
    if (!prior_only) {
      log_density[1] += matern_log_marginal(observed, append_row(warp, warp_pivot), mu, sigma_n,
                                            sq, sigma_f, lengthscale, p, main_variance, main_ratio);
    }
  }
  if (want_pointwise || M || density_by_ep) {
    vector[n_pairs] k = matern_sum_cov(sq, sigma_f, lengthscale, p, main_variance, main_ratio);
    vector[N * M] cross = matern_sum_cov(sq_cross, sigma_f, lengthscale, p, main_variance,
                                         main_ratio);
    vector[n_pairs_new] k_new = matern_sum_cov(sq_new, sigma_f, lengthscale, p, main_variance,
                                               main_ratio);
    vector[N] variance = rep_vector(square(sigma_f), N);
    vector[M] variance_new = rep_vector(square(sigma_f), M);
    #include blocks/predictions.stan
  }
}

/**
 * Fully Bayesian Gaussian process with a Matern kernel of half-integer order, one length-scale per
 * dimension, a constant mean and Gaussian noise. If n_main > 0, a kernel of each parameter alone is
 * added, with a relative variance that is sampled.
 *
 *   T(y) ~ Normal(mu, K + sigma_n^2 I),   K_ij = matern_sum_cov(x_i, x_j)
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
  int<lower=0> n_main; // parameters with a kernel of their own; 0: the kernel of all parameters alone
  array[n_main ? D : 0] int<lower=1, upper=n_main> main_of; // parameter of each column
  
  #include blocks/lengthscale_prior.stan
  
  vector[n_main] main_variance_location; // main_variance ~ LogNormal(location, scale)
  vector<lower=0>[n_main] main_variance_scale;
  matrix[n_main, 3] main_variance_gamma;
  vector[n_main] main_lengthscale_location; // main_lengthscale ~ LogNormal(location, scale)
  vector<lower=0>[n_main] main_lengthscale_scale;
  matrix[n_main, 3] main_lengthscale_gamma;
}
transformed data {
  #include blocks/transformed_data.stan
  
  matrix[n_pairs, D] sq = squared_differences(X, X, lower_triangle(N));
  matrix[N * M, D] sq_cross = squared_differences(X, X_new, rectangle(N, M));
  matrix[n_pairs_new, D] sq_new = squared_differences(X_new, X_new, lower_triangle(M_cov));
  matrix[n_pairs, n_main] apart = grouped_distances(sq, main_of, n_main);
  matrix[N * M, n_main] apart_cross = grouped_distances(sq_cross, main_of, n_main);
  matrix[n_pairs_new, n_main] apart_new = grouped_distances(sq_new, main_of, n_main);
}
parameters {
  real z_mu;
  real z_sigma_f;
  real z_sigma_n;
  vector[n_warp] z_warp;
  vector[D] z_lengthscale;
  vector[n_main] z_main_variance;
  vector[n_main] z_main_lengthscale;
}
transformed parameters {
  #include blocks/transformed_parameters.stan
  
  vector<lower=0>[D] lengthscale = log_normal(lengthscale_score(z_lengthscale,
                                                                lengthscale_location,
                                                                lengthscale_scale, N),
                                              lengthscale_location, lengthscale_scale);
  vector<lower=0>[n_main] main_variance = log_normal(z_main_variance, main_variance_location,
                                                     main_variance_scale);
  vector<lower=0>[n_main] main_lengthscale = log_normal(lengthscale_score(
                                                        z_main_lengthscale,
                                                        main_lengthscale_location,
                                                        main_lengthscale_scale, N),
                                                        main_lengthscale_location,
                                                        main_lengthscale_scale);
}
model {
  #include blocks/model.stan
  
  z_lengthscale ~ lengthscale_coordinate(lengthscale_location, lengthscale_scale,
                                         lengthscale_gamma, N, omit_jacobian);
  z_main_variance ~ score(main_variance_location, main_variance_scale, main_variance_gamma);
  z_main_lengthscale ~ lengthscale_coordinate(main_lengthscale_location, main_lengthscale_scale,
                                              main_lengthscale_gamma, N, omit_jacobian);
  if (!prior_only) {
    target += matern_log_marginal(observed, warp, mu, sigma_n, sq, sigma_f, lengthscale, p, apart,
                                  main_variance, main_lengthscale);
  }
}
generated quantities {
  // Repeats the hyperparameters: CmdStan's generate_quantities omits transformed parameters.
  vector[3 + n_warp + D + 2 * n_main] theta = stack(stack([mu, sigma_f, sigma_n]', warp,
                                                          lengthscale),
                                                    main_variance, main_lengthscale);
  #include blocks/generated_quantities.stan
  
  if (want_density) {
    // The model block once more, without derivatives: CmdStan evaluates many points in one call.
    #include blocks/prior.stan
    
    log_prior += score_lpdf(z_main_variance | main_variance_location, main_variance_scale, main_variance_gamma);
    log_prior += lengthscale_coordinate_lpdf(z_main_lengthscale | main_lengthscale_location, main_lengthscale_scale, main_lengthscale_gamma, N, omit_jacobian);
    log_density[1] = log_prior
                     + matern_log_marginal(observed, warp, mu, sigma_n, sq, sigma_f, lengthscale,
                                           p, apart, main_variance, main_lengthscale);
  }
  if (want_pointwise || M || density_by_ep) {
    vector[n_pairs] k = matern_sum_cov(sq, sigma_f, lengthscale, p, apart, main_variance,
                                       main_lengthscale);
    vector[N * M] cross = matern_sum_cov(sq_cross, sigma_f, lengthscale, p, apart_cross,
                                         main_variance, main_lengthscale);
    vector[n_pairs_new] k_new = matern_sum_cov(sq_new, sigma_f, lengthscale, p, apart_new,
                                               main_variance, main_lengthscale);
    vector[N] variance = rep_vector(square(sigma_f), N);
    vector[M] variance_new = rep_vector(square(sigma_f), M);
    #include blocks/predictions.stan
  }
}

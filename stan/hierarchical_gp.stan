/**
 * Fully Bayesian Gaussian process on a conditional space: some dimensions are active only for some
 * values of others (Hutter & Osborne 2013).
 *
 *   T(y) ~ Normal(mu, K + sigma_n^2 I),
 *   K_ij = sigma_f^2 (product or sum over dimensions of a base kernel of the hierarchical distance)
 *
 * The variance of the function is sigma_f^2 for the product and D sigma_f^2 for the sum. The prior
 * of sigma_f is meant for the standard deviation of the function: the program divides by sqrt(D).
 */
functions {
  #include functions/distances.stan
  #include functions/matern.stan
  
  #include functions/base_kernels.stan
  
  #include functions/hierarchical.stan
  
  #include functions/warp.stan
  
  #include functions/probit.stan
  
  #include functions/gp_posterior.stan
  
  #include functions/hierarchical_marginal.stan
  
  #include functions/priors.stan
  
  #include functions/coordinates.stan
}
data {
  #include blocks/data.stan
  
  matrix[N, D] X; // inputs; real: in [0, 1]; categorical: index of the level
  matrix[M, D] X_new; // as X
  matrix<lower=0, upper=1>[N, D] active; // 1 where the dimension has a value
  matrix<lower=0, upper=1>[M, D] active_new; // as active
  array[D] int<lower=0> levels; // number of levels, 0 for a real dimension
  matrix<lower=0, upper=1>[D, D] lineage; // [i, j]: 1 if j is i or an ancestor of i
  int<lower=1, upper=3> base; // 1 squared-exponential, 2 rational quadratic, 3 Matern
  int<lower=0> p; // Matern order, nu = p + 1/2
  int<lower=0, upper=1> add; // combine dimensions by 0 product, 1 sum
  
  vector<lower=0>[D] gamma_a; // gamma ~ Beta(a, b)
  vector<lower=0>[D] gamma_b;
  vector<lower=0>[D] rho_a; // rho ~ Beta(a, b)
  vector<lower=0>[D] rho_b;
  vector[base == RATIONAL_QUADRATIC()] rq_alpha_location; // rq_alpha ~ LogNormal(location, scale)
  vector<lower=0>[base == RATIONAL_QUADRATIC()] rq_alpha_scale;
  matrix[base == RATIONAL_QUADRATIC(), 3] rq_alpha_gamma;
  
  #include blocks/lengthscale_prior.stan
}
transformed data {
  #include blocks/transformed_data.stan
  
  if (add && D == 0) {
    reject("add is 1, and D is 0; use add = 0");
  }
  int n_theta = 3 + n_warp + 3 * D + size(rq_alpha_location);
  real relative_variance = add ? D : 1; // k(x, x) / sigma_f^2
  tuple(array[D] int, matrix[D, D], int, int, int) structure = (levels, lineage, base, p, add);
  array[3] matrix[n_pairs, D] features;
  array[3] matrix[N * M, D] features_cross;
  array[3] matrix[n_pairs_new, D] features_new;
  features = hierarchical_features(X, active, X, active, levels, lower_triangle(N));
  features_cross = hierarchical_features(X, active, X_new, active_new, levels, rectangle(N, M));
  features_new = hierarchical_features(X_new, active_new, X_new, active_new, levels,
                                       lower_triangle(M_cov));
}
parameters {
  real z_mu;
  real z_sigma_f;
  real z_sigma_n;
  vector[n_warp] z_warp;
  vector[D] z_gamma;
  vector[D] z_rho;
  vector[D] z_lengthscale;
  vector[base == RATIONAL_QUADRATIC()] z_rq_alpha;
}
transformed parameters {
  #include blocks/transformed_parameters.stan
  
  vector<lower=0, upper=1>[D] gamma = inv_logit(z_gamma);
  vector<lower=0, upper=1>[D] rho = inv_logit(z_rho);
  vector<lower=0>[D] lengthscale = log_normal(lengthscale_score(z_lengthscale,
                                                                lengthscale_location,
                                                                lengthscale_scale, N),
                                              lengthscale_location, lengthscale_scale);
  vector<lower=0>[size(rq_alpha_location)] rq_alpha = log_normal(z_rq_alpha, rq_alpha_location,
                                                                 rq_alpha_scale);
  sigma_f /= sqrt(relative_variance);
}
model {
  #include blocks/model.stan
  
  z_gamma ~ logit_beta(gamma_a, gamma_b);
  z_rho ~ logit_beta(rho_a, rho_b);
  z_lengthscale ~ lengthscale_coordinate(lengthscale_location, lengthscale_scale,
                                         lengthscale_gamma, N, omit_jacobian);
  z_rq_alpha ~ score(rq_alpha_location, rq_alpha_scale, rq_alpha_gamma);
  
  if (!prior_only) {
    target += hierarchical_log_marginal(observed, append_row(warp, warp_pivot), mu, sigma_n,
                                        features, sigma_f, (gamma, rho, lengthscale, rq_alpha),
                                        structure);
  }
}
generated quantities {
  // Repeats the hyperparameters: CmdStan's generate_quantities omits transformed parameters.
  vector[n_theta] theta = append_row(stack([mu, sigma_f, sigma_n]', warp, gamma),
                                     stack(rho, lengthscale, rq_alpha));
  #include blocks/generated_quantities.stan
  
  if (want_density) {
    // The model block once more, without derivatives: CmdStan evaluates many points in one call.
    #include blocks/prior.stan
    
    log_prior += logit_beta_lpdf(z_gamma | gamma_a, gamma_b);
    log_prior += logit_beta_lpdf(z_rho | rho_a, rho_b);
    log_prior += score_lpdf(z_rq_alpha | rq_alpha_location, rq_alpha_scale, rq_alpha_gamma);
    log_density[1] = log_prior;
    if (!prior_only) {
      log_density[1] += hierarchical_log_marginal(observed, append_row(
                                                  warp, warp_pivot), mu, sigma_n, features,
                                                  sigma_f, (gamma, rho, lengthscale, rq_alpha),
                                                  structure);
    }
  }
  if (want_pointwise || M || density_by_ep) {
    tuple(vector[D], vector[D], vector[D], vector[size(rq_alpha)]) hyper;
    vector[n_pairs] k;
    vector[N * M] cross;
    vector[n_pairs_new] k_new;
    vector[N] variance = rep_vector(relative_variance * square(sigma_f), N);
    vector[M] variance_new = rep_vector(relative_variance * square(sigma_f), M);
    hyper = (gamma, rho, lengthscale, rq_alpha);
    k = square(sigma_f) * hierarchical(features, hyper, structure);
    cross = square(sigma_f) * hierarchical(features_cross, hyper, structure);
    k_new = square(sigma_f) * hierarchical(features_new, hyper, structure);
    #include blocks/predictions.stan
  }
}

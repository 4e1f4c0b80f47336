/**
 * Fully Bayesian Gaussian process on a mixed space by frequency modulation (Oh, Gavves & Welling
 * 2021). Each discrete parameter is a graph; the continuous parameters modulate its frequencies.
 *
 *   T(y) ~ Normal(mu, K + sigma_n^2 I),
 *   K_ij = sigma_f^2 prod_p sum_g W_pg f(lambda_pg, t)
 *
 * The number of graphs and the number of continuous parameters may be 0.
 *
 * The factors f are not normalised, so the variance of the function is not sigma_f^2. The prior of
 * sigma_f is meant for the standard deviation of the function, averaged over all vertices: the
 * program divides by the root mean of k(x, x) / sigma_f^2 at t = 0. The distance t of a point to
 * itself is above 0 for the neural modulator, and the function's standard deviation smaller.
 */
functions {
  #include functions/distances.stan
  #include functions/matern.stan
  
  #include functions/base_kernels.stan
  
  #include functions/hierarchical.stan
  
  #include functions/frequency_modulated.stan
  
  #include functions/warp.stan
  
  #include functions/probit.stan
  
  #include functions/gp_posterior.stan
  
  #include functions/fm_marginal.stan
  
  #include functions/priors.stan
  
  #include functions/coordinates.stan
}
data {
  #include blocks/data.stan
  
  matrix[N, D] X; // continuous inputs, in [0, 1]
  matrix[M, D] X_new; // as X
  matrix<lower=0, upper=1>[N, D] active; // 1 where the parameter has a value
  matrix<lower=0, upper=1>[M, D] active_new; // as active
  
  int<lower=0> P; // graphs
  int<lower=0> G; // distinct eigenvalues of the Laplacians, over all graphs
  int<lower=0> Q; // vertices, over all graphs
  vector<lower=0>[G] lambda; // distinct eigenvalues, graph after graph
  array[G] int<lower=1, upper=P> graph_of; // graph of each distinct eigenvalue, ascending
  array[Q] int<lower=1, upper=G> group_of; // distinct eigenvalue of each eigenvector
  matrix[N, Q] U; // eigenvectors at the observed vertices, graphs side by side
  matrix[M, Q] U_new; // as U
  
  int<lower=1, upper=5> modulator; // 1 laplacian, 2 power, 3 neural, 4 diffusion, 5 hierarchical
  int<lower=0, upper=2> combine; // 0 modulation; 1 product, 2 sum of separate kernels
  int<lower=1> orders; // power: orders n = 1..orders; else 1
  real<lower=0, upper=2> tau; // power: exponent of the distance
  int<lower=0> H; // hierarchical: number of weights gamma; else 0
  matrix<lower=0, upper=1>[D, H] lineage; // [i, j]: 1 if gamma_j belongs to i or an ancestor of i
  // Kernel of one dimension (hierarchical) or of the continuous parameters (product, sum):
  int<lower=1, upper=3> base; // 1 squared-exponential, 2 rational quadratic, 3 Matern
  int<lower=0> p; // Matern order, nu = p + 1/2
  int<lower=0, upper=1> add; // hierarchical: combine dimensions by 0 product, 1 sum
  
  int<lower=0, upper=P> n_alpha; // P where alpha modulates, else 0
  vector[n_alpha] alpha_location; // alpha ~ LogNormal(location, scale)
  vector<lower=0>[n_alpha] alpha_scale;
  matrix[n_alpha, 3] alpha_gamma;
  vector[P] beta_location; // beta ~ LogNormal(location, scale)
  vector<lower=0>[P] beta_scale;
  matrix[P, 3] beta_gamma;
  vector<lower=0>[modulator == POWER() ? orders : 0] weights_concentration; // weights ~ Dirichlet
  vector[modulator == NEURAL()] bias_location; // bias ~ LogNormal(location, scale)
  vector<lower=0>[modulator == NEURAL()] bias_scale;
  matrix[modulator == NEURAL(), 3] bias_gamma;
  vector<lower=0>[H] gamma_a; // gamma ~ Beta(a, b)
  vector<lower=0>[H] gamma_b;
  vector<lower=0>[modulator == HIERARCHICAL() ? D : 0] rho_a; // rho ~ Beta(a, b)
  vector<lower=0>[modulator == HIERARCHICAL() ? D : 0] rho_b;
  // rq_alpha ~ LogNormal(location, scale)
  vector[modulator == HIERARCHICAL() && base == RATIONAL_QUADRATIC()] rq_alpha_location;
  vector<lower=0>[modulator == HIERARCHICAL() && base == RATIONAL_QUADRATIC()] rq_alpha_scale;
  matrix[modulator == HIERARCHICAL() && base == RATIONAL_QUADRATIC(), 3] rq_alpha_gamma;
  
  #include blocks/lengthscale_prior.stan
}
transformed data {
  #include blocks/transformed_data.stan
  
  check_modulation(modulator, combine, orders, tau, H, base, graph_of);
  int n_theta = 3 + n_warp + D + n_alpha + P + size(weights_concentration) + size(bias_location)
                + H + size(rho_a) + size(rq_alpha_location);
  matrix[1, G] mean_W = mean_vertex_weights(graph_of, group_of);
  tuple(matrix[N, D], matrix[N, D], matrix[N, Q]) points = (X, active, U);
  tuple(matrix[M, D], matrix[M, D], matrix[M, Q]) points_new = (X_new, active_new, U_new);
  tuple(array[3] matrix[n_pairs + N, D], matrix[n_pairs + N, G]) pairs;
  tuple(array[3] matrix[N * M, D], matrix[N * M, G]) pairs_cross;
  tuple(array[3] matrix[n_pairs_new, D], matrix[n_pairs_new, G]) pairs_new;
  tuple(array[3] matrix[M, D], matrix[M, G]) self_pairs_new;
  
  tuple(tuple(int, real, matrix[D, H], int, int, int), tuple(int, int, vector[G], array[G] int)) structure;
  pairs = fm_pairs(points, points, triangle_and_diagonal(N), modulator, group_of, G);
  pairs_cross = fm_pairs(points, points_new, rectangle(N, M), modulator, group_of, G);
  pairs_new = fm_pairs(points_new, points_new, lower_triangle(M_cov), modulator, group_of, G);
  self_pairs_new = fm_pairs(points_new, points_new, self_pairs(M), modulator, group_of, G);
  structure = ((modulator, tau, lineage, base, p, add), (modulator, combine, lambda, graph_of));
}
parameters {
  real z_mu;
  real z_sigma_f;
  real z_sigma_n;
  vector[n_warp] z_warp;
  vector[D] z_lengthscale;
  vector[n_alpha] z_alpha;
  vector[P] z_beta;
  vector[modulator == POWER() ? orders : 0] z_weights;
  vector[modulator == NEURAL()] z_bias;
  vector[H] z_gamma;
  vector[modulator == HIERARCHICAL() ? D : 0] z_rho;
  vector[modulator == HIERARCHICAL() && base == RATIONAL_QUADRATIC()] z_rq_alpha;
}
transformed parameters {
  #include blocks/transformed_parameters.stan
  
  vector<lower=0>[D] lengthscale = log_normal(lengthscale_score(z_lengthscale,
                                                                lengthscale_location,
                                                                lengthscale_scale, N),
                                              lengthscale_location, lengthscale_scale);
  vector<lower=0>[P] alpha = rep_vector(1, P);
  vector<lower=0>[P] beta = log_normal(z_beta, beta_location, beta_scale);
  vector<lower=0>[orders] weights = rep_vector(1, orders);
  vector<lower=0>[modulator == NEURAL()] bias = log_normal(z_bias, bias_location, bias_scale);
  vector<lower=0, upper=1>[H] gamma = inv_logit(z_gamma);
  vector<lower=0, upper=1>[size(rho_a)] rho = inv_logit(z_rho);
  vector<lower=0>[size(rq_alpha_location)] rq_alpha = log_normal(z_rq_alpha, rq_alpha_location,
                                                                 rq_alpha_scale);
  if (n_alpha) {
    alpha = log_normal(z_alpha, alpha_location, alpha_scale);
  }
  if (modulator == POWER()) {
    weights = softmax(z_weights);
  }
  sigma_f /= sqrt(frequency_modulated(mean_W, rep_vector(0, 1), rep_vector(
                                      1, 1), (alpha, beta, weights), structure.2)[1]);
}
model {
  #include blocks/model.stan
  
  z_lengthscale ~ lengthscale_coordinate(lengthscale_location, lengthscale_scale,
                                         lengthscale_gamma, N, omit_jacobian);
  z_alpha ~ score(alpha_location, alpha_scale, alpha_gamma);
  z_beta ~ score(beta_location, beta_scale, beta_gamma);
  z_weights ~ log_gamma(weights_concentration);
  z_bias ~ score(bias_location, bias_scale, bias_gamma);
  z_gamma ~ logit_beta(gamma_a, gamma_b);
  z_rho ~ logit_beta(rho_a, rho_b);
  z_rq_alpha ~ score(rq_alpha_location, rq_alpha_scale, rq_alpha_gamma);
  
  if (!prior_only) {
    target += fm_log_marginal(observed, append_row(warp, warp_pivot), mu, sigma_n, pairs,
                              (sigma_f, (lengthscale, bias, gamma, rho, rq_alpha),
                               (alpha, beta, weights)),
                              structure);
  }
}
generated quantities {
  // Repeats the hyperparameters: CmdStan's generate_quantities omits transformed parameters.
  vector[n_theta] theta = stack(stack([mu, sigma_f, sigma_n]', warp, lengthscale),
                                stack(head(alpha, n_alpha), beta, head(weights, size(z_weights))),
                                append_row(bias, stack(gamma, rho, rq_alpha)));
  #include blocks/generated_quantities.stan
  
  if (want_density) {
    // The model block once more, without derivatives: CmdStan evaluates many points in one call.
    #include blocks/prior.stan
    
    log_prior += score_lpdf(z_alpha | alpha_location, alpha_scale, alpha_gamma)
                 + score_lpdf(z_beta | beta_location, beta_scale, beta_gamma)
                 + score_lpdf(z_bias | bias_location, bias_scale, bias_gamma)
                 + score_lpdf(z_rq_alpha | rq_alpha_location, rq_alpha_scale, rq_alpha_gamma);
    log_prior += log_gamma_lpdf(z_weights | weights_concentration);
    log_prior += logit_beta_lpdf(z_gamma | gamma_a, gamma_b)
                 + logit_beta_lpdf(z_rho | rho_a, rho_b);
    log_density[1] = log_prior;
    if (!prior_only) {
      log_density[1] += fm_log_marginal(observed, append_row(warp, warp_pivot), mu, sigma_n, pairs,
                                        (sigma_f, (lengthscale, bias, gamma, rho, rq_alpha),
                                         (alpha, beta, weights)),
                                        structure);
    }
  }
  if (want_pointwise || M || density_by_ep) {
    tuple(real,
          tuple(vector[D], vector[size(bias)], vector[H], vector[size(rho)], vector[size(rq_alpha)]),
          tuple(vector[P], vector[P], vector[orders])) hyper;
    vector[n_pairs + N] k_and_variance;
    vector[n_pairs] k;
    vector[N] variance;
    vector[N * M] cross;
    vector[n_pairs_new] k_new;
    vector[M] variance_new;
    hyper = (sigma_f, (lengthscale, bias, gamma, rho, rq_alpha), (alpha, beta, weights));
    k_and_variance = fm_cov(pairs, hyper, structure);
    k = head(k_and_variance, n_pairs);
    variance = tail(k_and_variance, N);
    cross = fm_cov(pairs_cross, hyper, structure);
    k_new = fm_cov(pairs_new, hyper, structure);
    variance_new = fm_cov(self_pairs_new, hyper, structure);
    #include blocks/predictions.stan
  }
}

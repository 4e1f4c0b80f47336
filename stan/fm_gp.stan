/**
 * Fully Bayesian Gaussian process on a mixed space by frequency modulation
 * (Oh, Gavves & Welling 2021): discrete parameters are graphs, whose
 * frequencies the continuous parameters modulate.
 *
 *   y ~ Normal(mu, K + sigma_n^2 I),
 *   K_ij = sigma_f^2 prod_p sum_g W_pg f(lambda_pg, t)
 *
 * Any number of graphs and of continuous parameters, none included.
 *
 * The factors f are not normalised, so that sigma_f^2 is not the variance of
 * the function. The prior of the signal standard deviation is put on the
 * function, averaged over all vertices: sigma_f is that over the root of the
 * mean of k(x, x) / sigma_f^2.
 */
functions {
  #include functions/distances.stan
  #include functions/matern.stan
  
  #include functions/base_kernels.stan
  
  #include functions/hierarchical.stan
  
  #include functions/frequency_modulated.stan
  
  #include functions/gp_posterior.stan
  #include functions/fm_marginal.stan
  
  #include functions/priors.stan
  #include functions/coordinates.stan
}
data {
  int<lower=0> N; // observations
  int<lower=0> D; // continuous parameters
  matrix[N, D] X; // continuous inputs, in [0, 1]
  matrix<lower=0, upper=1>[N, D] active; // 1 where the parameter has a value
  vector[N] y; // targets, standardised
  
  int<lower=0> P; // graphs
  int<lower=0> G; // distinct eigenvalues of their Laplacians, in all
  int<lower=0> Q; // vertices, in all
  vector<lower=0>[G] lambda; // distinct eigenvalues, graph after graph
  array[G] int<lower=1, upper=P> graph_of; // graph of each of them, ascending
  array[Q] int<lower=1, upper=G> group_of; // eigenvalue of each eigenvector
  matrix[N, Q] U; // eigenvectors at the vertices observed, side by side
  
  int<lower=1, upper=5> modulator; // 1 laplacian, 2 power, 3 neural, 4 diffusion, 5 hierarchical
  int<lower=0, upper=2> combine; // 0 modulation; 1 product, 2 sum of separate kernels
  int<lower=1> orders; // power: orders n = 1..orders; else 1
  real<lower=0, upper=2> tau; // power: exponent of the distance
  int<lower=0> H; // hierarchical: weights gamma; else 0
  matrix<lower=0, upper=1>[D, H] lineage; // [i, j]: gamma_j is of i or an ancestor
  int<lower=1, upper=3> base; // hierarchical: 1 squared-exponential, 2 rational quadratic, 3 Matern
  int<lower=0> p; // hierarchical: Matern order
  int<lower=0, upper=1> add; // hierarchical: combine dimensions by 0 product, 1 sum
  
  int<lower=0> M; // new points
  matrix[M, D] X_new; // as X
  matrix<lower=0, upper=1>[M, D] active_new; // as active
  matrix[M, Q] U_new; // as U
  int<lower=0, upper=1> want_cov; // 1: also the M x M covariance f_cov
  int<lower=0, upper=1> prior_only; // 1: skip the likelihood
  int<lower=0, upper=1> of_scores; // 1: density of the scores, for a mode
  
  real mu_location; // mu ~ Normal(location, scale), in units of y
  real<lower=0> mu_scale;
  real sigma_f_location; // signal sd ~ LogNormal(location, scale)
  real<lower=0> sigma_f_scale;
  real sigma_n_location; // sigma_n ~ LogNormal(location, scale)
  real<lower=0> sigma_n_scale;
  vector[D] lengthscale_location; // lengthscale ~ LogNormal(location, scale)
  vector<lower=0>[D] lengthscale_scale;
  int<lower=0, upper=P> n_alpha; // P where alpha modulates, else 0
  vector[n_alpha] alpha_location; // alpha ~ LogNormal(location, scale)
  vector<lower=0>[n_alpha] alpha_scale;
  vector[P] beta_location; // beta ~ LogNormal(location, scale)
  vector<lower=0>[P] beta_scale;
  vector<lower=0>[modulator == POWER() ? orders : 0] weights_concentration; // weights ~ Dirichlet
  vector[modulator == NEURAL()] bias_location; // bias ~ LogNormal(location, scale)
  vector<lower=0>[modulator == NEURAL()] bias_scale;
  vector<lower=0>[H] gamma_a; // gamma ~ Beta(a, b)
  vector<lower=0>[H] gamma_b;
  vector<lower=0>[modulator == HIERARCHICAL() ? D : 0] rho_a; // rho ~ Beta(a, b)
  vector<lower=0>[modulator == HIERARCHICAL() ? D : 0] rho_b;
  vector[modulator == HIERARCHICAL() && base == RATIONAL_QUADRATIC()] rq_alpha_location; // rq_alpha ~ LogNormal
  vector<lower=0>[modulator == HIERARCHICAL() && base == RATIONAL_QUADRATIC()] rq_alpha_scale;
}
transformed data {
  int n_theta = 3 + D + n_alpha + P + size(weights_concentration)
                + size(bias_location) + size(gamma_a) + size(rho_a)
                + size(rq_alpha_location);
  int n_pairs = (N * (N - 1)) %/% 2; // and N points with themselves
  array[3] matrix[n_pairs + N, D] features = continuous_features(X, active,
                                                                 X, active,
                                                                 modulator,
                                                                 triangle_and_diagonal(
                                                                 N));
  matrix[n_pairs + N, G] W = vertex_weights(U, U, group_of, G,
                                            triangle_and_diagonal(N));
  matrix[1, G] mean_W = mean_vertex_weights(graph_of, group_of);
}
parameters {
  real z_mu;
  real z_sigma_f;
  real z_sigma_n;
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
  real mu = mu_location + mu_scale * z_mu;
  real<lower=0> sigma_f;
  real<lower=0> sigma_n = log_normal(noise_score(z_sigma_n, sigma_n_location,
                                                 sigma_n_scale, N),
                                     sigma_n_location, sigma_n_scale);
  vector<lower=0>[D] lengthscale = log_normal(lengthscale_score(z_lengthscale,
                                                                lengthscale_location,
                                                                lengthscale_scale,
                                                                N),
                                              lengthscale_location,
                                              lengthscale_scale);
  vector<lower=0>[P] alpha = rep_vector(1, P);
  vector<lower=0>[P] beta = log_normal(z_beta, beta_location, beta_scale);
  vector<lower=0>[orders] weights = rep_vector(1, orders);
  vector<lower=0>[modulator == NEURAL()] bias = log_normal(z_bias,
                                                           bias_location,
                                                           bias_scale);
  vector<lower=0, upper=1>[H] gamma = inv_logit(z_gamma);
  vector<lower=0, upper=1>[modulator == HIERARCHICAL() ? D : 0] rho = inv_logit(z_rho);
  vector<lower=0>[modulator == HIERARCHICAL() && base == RATIONAL_QUADRATIC()] rq_alpha = log_normal(z_rq_alpha,
                                                                    rq_alpha_location,
                                                                    rq_alpha_scale);
  if (n_alpha) {
    alpha = log_normal(z_alpha, alpha_location, alpha_scale);
  }
  if (modulator == POWER()) {
    weights = softmax(z_weights);
  }
  sigma_f = log_normal(z_sigma_f, sigma_f_location, sigma_f_scale)
            / sqrt(frequency_modulated(mean_W, rep_vector(0, 1), lambda,
                                       graph_of, alpha, beta, weights,
                                       modulator, combine)[1]);
}
model {
  z_mu ~ std_normal();
  z_sigma_f ~ std_normal();
  z_sigma_n ~ noise_coordinate(sigma_n_location, sigma_n_scale, N, of_scores);
  z_lengthscale ~ lengthscale_coordinate(lengthscale_location,
                                         lengthscale_scale, N, of_scores);
  z_alpha ~ std_normal();
  z_beta ~ std_normal();
  z_weights ~ log_gamma(weights_concentration);
  z_bias ~ std_normal();
  z_gamma ~ logit_beta(gamma_a, gamma_b);
  z_rho ~ logit_beta(rho_a, rho_b);
  z_rq_alpha ~ std_normal();
  
  if (!prior_only) {
    target += fm_log_marginal(y, mu, sigma_n, features, W, sigma_f,
                              lengthscale, alpha, beta, weights, bias, gamma,
                              rho, rq_alpha, lambda, graph_of, lineage,
                              modulator, combine, tau, base, p, add);
  }
}
generated quantities {
  // Transformed parameters once more: CmdStan's generate_quantities leaves them out.
  vector[n_theta] theta = stack(stack([mu, sigma_f, sigma_n]', lengthscale,
                                      head(alpha, n_alpha)),
                                stack(beta, head(weights, size(z_weights)),
                                      bias),
                                stack(gamma, rho, rq_alpha));
  vector[N] log_lik; // log p(y_i | y_-i, hyperparameters)
  vector[N] y_rep; // y_i replicated given y_-i; all at once if prior_only
  vector[M] f_mean; // latent function at X_new: mean,
  vector[M] f_sd; // standard deviation,
  matrix[want_cov ? M : 0, want_cov ? M : 0] f_cov; // and covariance
  {
    vector[n_pairs + N] k = fm_cov(features, W, sigma_f, lengthscale, alpha,
                                   beta, weights, bias, gamma, rho, rq_alpha,
                                   lambda, graph_of, lineage, modulator,
                                   combine, tau, base, p, add);
    vector[N * M] cross = fm_cov(continuous_features(X, active, X_new,
                                                     active_new, modulator,
                                                     rectangle(N, M)),
                                 vertex_weights(U, U_new, group_of, G,
                                                rectangle(N, M)),
                                 sigma_f, lengthscale, alpha, beta, weights,
                                 bias, gamma, rho, rq_alpha, lambda,
                                 graph_of, lineage, modulator, combine, tau,
                                 base, p, add);
    vector[M] variance_new = fm_cov(continuous_features(X_new, active_new,
                                                        X_new, active_new,
                                                        modulator,
                                                        self_pairs(M)),
                                    vertex_weights(U_new, U_new, group_of, G,
                                                   self_pairs(M)),
                                    sigma_f, lengthscale, alpha, beta,
                                    weights, bias, gamma, rho, rq_alpha,
                                    lambda, graph_of, lineage, modulator,
                                    combine, tau, base, p, add);
    matrix[N, N] L = gp_factor(head(k, n_pairs), tail(k, N), sigma_n);
    matrix[N, M] V = gp_solve(L, cross, M, prior_only);
    tuple(vector[N], vector[N]) others = gp_leave_one_out(gp_precision(
                                                          L), y, mu);
    log_lik = gp_log_lik(y, others);
    y_rep = gp_replicate_rng(L, mu, others, prior_only);
    f_mean = gp_mean(V, L, y - mu, mu);
    f_sd = gp_sd(V, variance_new);
    if (want_cov) {
      vector[(M * (M - 1)) %/% 2] k_new = fm_cov(continuous_features(
                                                 X_new, active_new, X_new,
                                                 active_new, modulator,
                                                 lower_triangle(M)),
                                                 vertex_weights(U_new, U_new,
                                                                group_of, G,
                                                                lower_triangle(
                                                                M)),
                                                 sigma_f, lengthscale, alpha,
                                                 beta, weights, bias, gamma,
                                                 rho, rq_alpha, lambda,
                                                 graph_of, lineage,
                                                 modulator, combine, tau,
                                                 base, p, add);
      f_cov = gp_cov(V, symmetric_matrix(k_new, variance_new));
    }
  }
}

/**
 * Fully Bayesian Gaussian process with a sum of products of kernels that is data: squared
 * exponential, rational quadratic, periodic, linear, Matern and constant leaves, and leaves whose
 * values were computed elsewhere.
 *
 *   T(y) ~ Normal(mu, K + sigma_n^2 I),   K_ij = sigma_f^2 expression(x_i, x_j)
 *
 * Every leaf has mean variance 1 on the unit cube and every sum is a convex combination, so sigma_f
 * is the standard deviation of the function whatever the expression.
 */
functions {
  #include functions/distances.stan
  
  #include functions/matern.stan
  
  #include functions/base_kernels.stan
  
  #include functions/composite.stan
  
  #include functions/warp.stan
  
  #include functions/probit.stan
  
  #include functions/gp_posterior.stan
  
  #include functions/composite_marginal.stan
  
  #include functions/priors.stan
  
  #include functions/coordinates.stan
}
data {
  #include blocks/data.stan
  
  matrix[N, D] X; // inputs, each column scaled to [0, 1]
  matrix[M, D] X_new; // new inputs, scaled as X
  
  int<lower=1> L; // leaves of the expression, in reading order
  array[L] int<lower=1, upper=10> kind; // see functions/composite.stan
  int<lower=0> n_lengthscale;
  array[L] int<lower=0> n_columns; // columns of the leaf
  array[L] int<lower=1> first_lengthscale; // its first length-scale
  array[n_lengthscale] int<lower=1, upper=D> column; // column of X of each length-scale
  int<lower=0> n_period;
  array[L] int<lower=0, upper=n_period> period_of; // period of the leaf; 0 for none
  int<lower=0> n_rq;
  array[L] int<lower=0, upper=n_rq> rq_alpha_of; // rq_alpha of the leaf; 0 for none
  int<lower=0> n_centre;
  array[L] int<lower=0, upper=n_centre> first_centre; // first centre of the leaf; 0 for none
  int<lower=0> n_feature;
  array[L] int<lower=0, upper=n_feature> feature_of; // feature_lengthscale of the leaf; 0 for none
  int<lower=0> n_given;
  array[L] int<lower=0, upper=n_given> given_of; // column of given of the leaf; 0 for none
  int<lower=0> n_split;
  int<lower=0> n_share; // 0, or L and no split: the leaves are added up
  array[2 * L - 1] int<lower=-(n_split + n_share), upper=L> steps; // postfix: leaf; 0 times; -j plus
  int<lower=1> depth; // largest size of the stack
  
  // Correlations or squared distances of given leaves, for triangle_and_diagonal(N), rectangle(N, M),
  // the new points themselves, and lower_triangle(M) if want_cov.
  matrix[(N * (N + 1)) %/% 2, n_given] given;
  matrix[N * M, n_given] given_cross;
  matrix[M, n_given] given_own;
  matrix[want_cov ? (M * (M - 1)) %/% 2 : 0, n_given] given_new;
  
  vector[n_lengthscale] lengthscale_location; // lengthscale ~ LogNormal(location, scale)
  vector<lower=0>[n_lengthscale] lengthscale_scale;
  matrix[n_lengthscale, 3] lengthscale_gamma;
  vector[n_period] period_location; // period ~ LogNormal(location, scale)
  vector<lower=0>[n_period] period_scale;
  matrix[n_period, 3] period_gamma;
  vector[n_rq] rq_alpha_location; // rq_alpha ~ LogNormal(location, scale)
  vector<lower=0>[n_rq] rq_alpha_scale;
  matrix[n_rq, 3] rq_alpha_gamma;
  vector[n_centre] centre_location; // centre ~ Normal(location, scale)
  vector<lower=0>[n_centre] centre_scale;
  vector<lower=0>[n_split] split_a; // split ~ Beta(a, b)
  vector<lower=0>[n_split] split_b;
  vector<lower=0>[n_share] share_concentration; // share ~ Dirichlet
  vector[n_feature] feature_lengthscale_location; // feature_lengthscale ~ LogNormal(location, scale)
  vector<lower=0>[n_feature] feature_lengthscale_scale;
  matrix[n_feature, 3] feature_lengthscale_gamma;
}
transformed data {
  #include blocks/transformed_data.stan
  
  int n_theta = 3 + n_warp + n_lengthscale + n_period + n_rq + n_centre + n_split + n_share
                + n_feature;
  array[L, 8] int leaf;
  tuple(matrix[N, D], array[2, (N * (N + 1)) %/% 2] int, matrix[(N * (N + 1)) %/% 2, n_given]) points;
  tuple(array[L, 8] int, array[n_lengthscale] int, array[2 * L - 1] int, int) structure;
  for (l in 1 : L) {
    leaf[l] = {kind[l], n_columns[l], first_lengthscale[l], period_of[l], rq_alpha_of[l],
               first_centre[l], feature_of[l], given_of[l]};
    check_leaf(l, leaf[l], n_lengthscale, n_centre);
  }
  check_steps(steps, depth, n_split + max(n_share, 1) - 1);
  points = (X, triangle_and_diagonal(N), given);
  structure = (leaf, column, steps, depth);
}
parameters {
  real z_mu;
  real z_sigma_f;
  real z_sigma_n;
  vector[n_warp] z_warp;
  vector[n_lengthscale] z_lengthscale;
  vector[n_period] z_period;
  vector[n_rq] z_rq_alpha;
  vector[n_centre] z_centre;
  vector[n_split] z_split;
  vector[n_share] z_share;
  vector[n_feature] z_feature_lengthscale;
}
transformed parameters {
  #include blocks/transformed_parameters.stan
  
  vector<lower=0>[n_lengthscale] lengthscale = log_normal(lengthscale_score(
                                                          z_lengthscale, lengthscale_location,
                                                          lengthscale_scale, N),
                                                          lengthscale_location, lengthscale_scale);
  vector<lower=0>[n_period] period = log_normal(z_period, period_location, period_scale);
  vector<lower=0>[n_rq] rq_alpha = log_normal(z_rq_alpha, rq_alpha_location, rq_alpha_scale);
  vector[n_centre] centre = centre_location + centre_scale .* z_centre;
  vector<lower=0, upper=1>[n_split] split = inv_logit(z_split);
  vector<lower=0, upper=1>[n_share] share = z_share;
  vector<lower=0>[n_feature] feature_lengthscale = log_normal(z_feature_lengthscale,
                                                              feature_lengthscale_location,
                                                              feature_lengthscale_scale);
  if (n_share) {
    share = softmax(z_share);
  }
}
model {
  #include blocks/model.stan
  
  z_lengthscale ~ lengthscale_coordinate(lengthscale_location, lengthscale_scale,
                                         lengthscale_gamma, N, omit_jacobian);
  z_period ~ score(period_location, period_scale, period_gamma);
  z_rq_alpha ~ score(rq_alpha_location, rq_alpha_scale, rq_alpha_gamma);
  z_centre ~ std_normal();
  z_split ~ logit_beta(split_a, split_b);
  z_share ~ log_gamma(share_concentration);
  z_feature_lengthscale ~ score(feature_lengthscale_location, feature_lengthscale_scale,
                                feature_lengthscale_gamma);
  if (!prior_only) {
    tuple(vector[n_split + max(n_share, 1) - 1], vector[n_split + max(n_share, 1) - 1]) weights;
    weights = sum_weights(split, share);
    target += composite_log_marginal(observed, append_row(warp, warp_pivot), mu, sigma_n, points,
                                     (sigma_f, lengthscale, period, rq_alpha, centre,
                                      feature_lengthscale, weights.1, weights.2),
                                     structure);
  }
}
generated quantities {
  // Repeats the hyperparameters: CmdStan's generate_quantities omits transformed parameters.
  vector[n_theta] theta = stack(stack([mu, sigma_f, sigma_n]', warp, lengthscale),
                                stack(period, rq_alpha, centre),
                                stack(split, share, feature_lengthscale));
  #include blocks/generated_quantities.stan
  
  if (want_density || want_pointwise || M) {
    tuple(vector[n_split + max(n_share, 1) - 1], vector[n_split + max(n_share, 1) - 1]) weights;
    
    tuple(real, vector[n_lengthscale], vector[n_period], vector[n_rq], vector
          [n_centre], vector[n_feature], vector[n_split + max(n_share, 1) - 1],
          vector[n_split + max(n_share, 1) - 1]) hyper;
    weights = sum_weights(split, share);
    hyper = (sigma_f, lengthscale, period, rq_alpha, centre, feature_lengthscale, weights.1,
             weights.2);
    if (want_density) {
      // The model block once more, without derivatives: CmdStan evaluates many points in one call.
      #include blocks/prior.stan
      
      log_prior += score_lpdf(z_period | period_location, period_scale, period_gamma)
                   + score_lpdf(z_rq_alpha | rq_alpha_location, rq_alpha_scale, rq_alpha_gamma)
                   + std_normal_lpdf(z_centre)
                   + score_lpdf(z_feature_lengthscale | feature_lengthscale_location, feature_lengthscale_scale, feature_lengthscale_gamma);
      log_prior += logit_beta_lpdf(z_split | split_a, split_b)
                   + log_gamma_lpdf(z_share | share_concentration);
      log_density[1] = log_prior;
      if (!prior_only) {
        log_density[1] += composite_log_marginal(observed, append_row(
                                                 warp, warp_pivot), mu, sigma_n, points, hyper,
                                                 structure);
      }
    }
    if (want_pointwise || M || density_by_ep) {
      vector[n_pairs + N] k_and_variance = composite_cov(X, X, points.2, given, hyper, structure);
      vector[n_pairs] k = head(k_and_variance, n_pairs);
      vector[N] variance = tail(k_and_variance, N);
      vector[N * M] cross = composite_cov(X, X_new, rectangle(N, M), given_cross, hyper, structure);
      vector[n_pairs_new] k_new = composite_cov(X_new, X_new, lower_triangle(
                                                M_cov), given_new, hyper, structure);
      vector[M] variance_new = composite_cov(X_new, X_new, self_pairs(
                                             M), given_own, hyper, structure);
      #include blocks/predictions.stan
    }
  }
}

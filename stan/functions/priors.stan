/**
 * Log-normal quantity of a standard-normal score:
 *
 *   exp(location + scale z).
 *
 * Programs sample scores z ~ Normal(0, 1) and compute the quantity from them. The prior is exact,
 * the sampler sees the same scale in every direction under any prior, and a mode is the mode on the
 * logarithmic scale.
 *
 * @param z standard-normal score
 * @param location mean of the logarithm
 * @param scale standard deviation of the logarithm
 * @return quantity
 */
real log_normal(real z, real location, real scale) {
  return exp(location + scale * z);
}

/**
 * Log-normal quantities of standard-normal scores, element by element:
 *
 *   exp(location_i + scale_i z_i).
 */
vector log_normal(vector z, vector location, vector scale) {
  return exp(location + scale .* z);
}

/**
 * Correction of a log-normal prior to another family: the log density ratio of both,
 *
 *   sum_i (shape_i power_i q_i - rate_i exp(power_i q_i) + (q_i - location_i)^2 / (2 scale_i^2)),
 *
 * for the logarithms q. The generalized gamma distribution, quantity^power ~ Gamma(shape, rate),
 * has the half-normal (power 2), gamma (1) and inverse gamma (-1) distributions as members.
 *
 * @param log_quantity q, logarithms of the quantities
 * @param location, scale log-normal distribution
 * @param gamma power, shape and rate in each row; power 0: the log-normal prior is not corrected
 * @return log density ratio, up to a constant
 */
real generalized_gamma(vector log_quantity, data vector location, data vector scale,
                       data matrix gamma) {
  real ratio = 0;
  for (i in 1 : size(log_quantity)) {
    if (gamma[i, 1] != 0) {
      real log_power = gamma[i, 1] * log_quantity[i];
      ratio += gamma[i, 2] * log_power - gamma[i, 3] * exp(log_power)
               + 0.5 * square((log_quantity[i] - location[i]) / scale[i]);
    }
  }
  return ratio;
}

/**
 * Density of the scores of positive quantities, with the correction g of generalized_gamma:
 *
 *   sum_i (log N(z_i | 0, 1) + g(location_i + scale_i z_i)).
 *
 * @param z scores, see log_normal
 * @param location, scale log-normal prior
 * @param gamma other family, see generalized_gamma
 * @return log density
 */
real score_lpdf(vector z, data vector location, data vector scale, data matrix gamma) {
  return std_normal_lupdf(z) + generalized_gamma(location + scale .* z, location, scale, gamma);
}

/**
 * Density of the score of one positive quantity, with the correction g of generalized_gamma:
 *
 *   log N(z | 0, 1) + g(location + scale z).
 */
real score_lpdf(real z, data real location, data real scale, data row_vector gamma) {
  return std_normal_lupdf(z)
         + generalized_gamma([location + scale * z]', [location]', [scale]', to_matrix(gamma));
}

/**
 * Density of the logit of a Beta(a, b) quantity x, with the beta function B:
 *
 *   sum_i (a_i log(x_i) + b_i log(1 - x_i) - log B(a_i, b_i)),   x_i = 1 / (1 + exp(-z_i)).
 *
 * The program samples z and computes x = inv_logit(z). The density is finite for quantities
 * arbitrarily close to 0 or 1.
 *
 * @param z logits
 * @param a, b shapes
 * @return log density
 */
real logit_beta_lpdf(vector z, data vector a, data vector b) {
  return dot_product(a, log_inv_logit(z)) + dot_product(b, log1m_inv_logit(z)) - sum(lbeta(a, b));
}

/**
 * Density of the logarithms of independent Gamma(shape, 1) quantities:
 *
 *   sum_i (shape_i z_i - exp(z_i) - log Gamma(shape_i)).
 *
 * Then softmax(z) is Dirichlet(shape), without a constrained parameter.
 *
 * @param z logarithms
 * @param shape concentrations of the Dirichlet distribution
 * @return log density
 */
real log_gamma_lpdf(vector z, data vector shape) {
  return dot_product(shape, z) - sum(exp(z)) - sum(lgamma(shape));
}

/**
 * Concatenation of three vectors:
 *
 *   (a', b', c')'.
 */
vector stack(vector a, vector b, vector c) {
  return append_row(append_row(a, b), c);
}

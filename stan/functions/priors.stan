/**
 * Log-normal quantity of a standard-normal score.
 *
 * Programs sample scores z ~ Normal(0, 1) and compute the quantity from them. The prior is exact,
 * the sampler sees the same scale in every direction under any prior, and a mode is the mode on the
 * logarithmic scale.
 *
 * @param z standard-normal score
 * @param location mean of the logarithm
 * @param scale standard deviation of the logarithm
 * @return exp(location + scale z)
 */
real log_normal(real z, real location, real scale) {
  return exp(location + scale * z);
}

/**
 * Log-normal quantities of standard-normal scores, element by element.
 */
vector log_normal(vector z, vector location, vector scale) {
  return exp(location + scale .* z);
}

/**
 * Density of the logit of a Beta(a, b) quantity. The program samples z and computes inv_logit(z).
 * The density is finite for quantities arbitrarily close to 0 or 1.
 *
 * @param z logits
 * @param a, b shapes
 * @return log density
 */
real logit_beta_lpdf(vector z, data vector a, data vector b) {
  return dot_product(a, log_inv_logit(z)) + dot_product(b, log1m_inv_logit(z)) - sum(lbeta(a, b));
}

/**
 * Density of the logarithms of independent Gamma(shape, 1) quantities. Then softmax(z) is
 * Dirichlet(shape), without a constrained parameter.
 *
 * @param z logarithms
 * @param shape concentrations of the Dirichlet distribution
 * @return log density
 */
real log_gamma_lpdf(vector z, data vector shape) {
  return dot_product(shape, z) - sum(exp(z)) - sum(lgamma(shape));
}

/**
 * Concatenation of three vectors.
 */
vector stack(vector a, vector b, vector c) {
  return append_row(append_row(a, b), c);
}

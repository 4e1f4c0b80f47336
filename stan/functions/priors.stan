/**
 * Log-normal quantity from its standard-normal score.
 *
 * Programs sample scores z ~ Normal(0, 1) and name the quantities they stand
 * for: the prior is exact, the sampler sees the same scale in every direction
 * whatever the prior, and a mode is the mode on the logarithmic scale.
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
 * Element by element; see the scalar version.
 */
vector log_normal(vector z, vector location, vector scale) {
  return exp(location + scale .* z);
}

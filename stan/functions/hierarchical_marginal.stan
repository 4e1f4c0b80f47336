/**
 * Log density of the observations with the function integrated out; see gp_log_marginal:
 *
 *   log N(T(y) | mu, K + S) + sum_i log T'(y_i),   K_ij = sigma_f^2 k(x_i, x_j),
 *
 * with the correlation k; see hierarchical.
 *
 * @param observed, sigma_n see noise_variance
 * @param warp see warped
 * @param mu constant mean
 * @param features of the pairs of lower_triangle(N), from hierarchical_features; three n_pairs x D
 * @param sigma_f signal standard deviation of one correlation
 * @param hyper, structure see hierarchical
 * @return log density
 */
real hierarchical_log_marginal(data tuple(vector, vector, real, int) observed, vector warp,
                               real mu, real sigma_n, data array[] matrix features, real sigma_f,
                               tuple(vector, vector, vector, vector) hyper,
                               data tuple(array[] int, matrix, int, int, int) structure) {
  real variance = (structure.5 ? size(hyper.2) : 1) * square(sigma_f);
  vector[rows(features[1])] k = square(sigma_f) * hierarchical(features, hyper, structure);
  return gp_log_marginal(observed, warp, mu, k, rep_vector(variance, size(observed.1)), sigma_n);
}

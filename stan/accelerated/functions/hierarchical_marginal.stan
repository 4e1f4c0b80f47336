/**
 * Log density of the observations with the function integrated out; see gp_log_marginal:
 *
 *   log N(T(y) | mu, K + S) + sum_i log T'(y_i),   K_ij = sigma_f^2 k(x_i, x_j),
 *
 * with the correlation k; see hierarchical.
 *
 * Declared only: accelerated/hierarchical.hpp defines it together with its derivatives.
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
                               data tuple(array[] int, matrix, int, int, int) structure);

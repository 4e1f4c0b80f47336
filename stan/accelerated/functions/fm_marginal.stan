/**
 * Log density of the observations with the function integrated out; see gp_log_marginal:
 *
 *   log N(T(y) | mu, K + S) + sum_i log T'(y_i),   K_ij = k(x_i, x_j),
 *
 * with the covariance k of fm_cov.
 *
 * Declared only: accelerated/fm.hpp defines it together with its derivatives.
 *
 * @param observed, sigma_n see noise_variance
 * @param warp see warped
 * @param mu constant mean
 * @param pairs of triangle_and_diagonal(N), from fm_pairs
 * @param hyper, structure see fm_cov
 * @return log density
 */
real fm_log_marginal(data tuple(vector, vector, real, int) observed, vector warp, real mu,
                     real sigma_n, data tuple(array[] matrix, matrix) pairs,
                     tuple(real, tuple(vector, vector, vector, vector, vector),
                           tuple(vector, vector, vector)) hyper,
                     data tuple(tuple(int, real, matrix, int, int, int),
                                tuple(int, int, vector, array[] int)) structure);

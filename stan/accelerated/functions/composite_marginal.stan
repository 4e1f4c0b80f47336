/**
 * Log density of the observations with the function integrated out; see gp_log_marginal:
 *
 *   log N(T(y) | mu, K + S) + sum_i log T'(y_i),   K_ij = k(x_i, x_j),
 *
 * with the covariance k of composite_cov.
 *
 * Declared only: accelerated/composite.hpp defines it together with its derivatives.
 *
 * @param observed, sigma_n see noise_variance
 * @param warp see warped
 * @param mu constant mean
 * @param points inputs (N x D), the pairs triangle_and_diagonal(N), given values of these pairs
 * @param hyper, structure see composite_cov
 * @return log density
 */
real composite_log_marginal(data tuple(vector, vector, real, int) observed, vector warp, real mu,
                            real sigma_n, data tuple(matrix, array[,] int, matrix) points,
                            tuple(real, vector, vector, vector, vector, vector, vector, vector) hyper,
                            data tuple(array[,] int, array[] int, array[] int, int) structure);

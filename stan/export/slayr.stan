/**
 * Log densities of Gaussian processes with analytic gradients, for any program. slayr.hpp defines
 * the functions that are only declared here.
 *
 * Each is the log density of observations with the function integrated out, with all constants. If
 * the covariance is not positive definite in floating point, it is minus infinity. The sampler then
 * rejects the proposal, as it does for hyperparameters outside their domain. Sizes that do not match
 * are an error.
 */

/**
 * Log density with a Matern kernel:
 *
 *   log N(y | mu, K + sigma_n^2 I),
 *   K_ij = sigma_f^2 M_p(sqrt((2 p + 1) h)),   h = sum_d (x_id - x_jd)^2 / lengthscale_d^2,
 *
 * with the correlations
 *
 *   M_0(d) = exp(-d),   M_1(d) = (1 + d) exp(-d),   M_2(d) = (1 + d + d^2 / 3) exp(-d).
 *
 * @param y values; N
 * @param mu means; N
 * @param X inputs, in any units; N x D
 * @param sigma_f standard deviation of the function, >= 0
 * @param lengthscale length-scales, in the units of the inputs, > 0; D
 * @param sigma_n standard deviation of the noise, >= 0
 * @param p order 0, 1 or 2: Matern 1/2, 3/2 or 5/2
 * @return log density
 */
real slayr_matern_lpdf(vector y, vector mu, data matrix X, real sigma_f, vector lengthscale,
                       real sigma_n, data int p);

/**
 * Log density with a Matern kernel, and one standard deviation of the noise for each value:
 *
 *   log N(y | mu, K + S),   S_ii = sigma_n[i]^2.
 *
 * @param y, mu, X, sigma_f, lengthscale, p see the function with one standard deviation
 * @param sigma_n standard deviations of the noise, >= 0; N
 * @return log density
 */
real slayr_matern_lpdf(vector y, vector mu, data matrix X, real sigma_f, vector lengthscale,
                       vector sigma_n, data int p);

/**
 * Log density with a squared-exponential kernel:
 *
 *   log N(y | mu, K + sigma_n^2 I),
 *   K_ij = sigma_f^2 exp(-h / 2),   h = sum_d (x_id - x_jd)^2 / lengthscale_d^2.
 *
 * @param y, mu, X, sigma_f, lengthscale, sigma_n see slayr_matern_lpdf
 * @return log density
 */
real slayr_exp_quad_lpdf(vector y, vector mu, data matrix X, real sigma_f, vector lengthscale,
                         real sigma_n);

/**
 * Log density with a squared-exponential kernel, and one standard deviation of the noise for each
 * value:
 *
 *   log N(y | mu, K + S),   S_ii = sigma_n[i]^2.
 *
 * @param y, mu, X, sigma_f, lengthscale see slayr_matern_lpdf
 * @param sigma_n standard deviations of the noise, >= 0; N
 * @return log density
 */
real slayr_exp_quad_lpdf(vector y, vector mu, data matrix X, real sigma_f, vector lengthscale,
                         vector sigma_n);

/**
 * Log density with sums and products of kernels, which are data:
 *
 *   log N(y | mu, K + sigma_n^2 I).
 *
 * A leaf of the expression reads some columns c of the inputs and has its own standard deviation:
 *
 *   sigma_f^2 k(a, b),   h = sum_c (a_c - b_c)^2 / lengthscale_c^2.
 *
 * The kind of a leaf selects the kernel k:
 *
 *   1        squared-exponential: exp(-h / 2)
 *   2        rational quadratic: (1 + h / (2 rq_alpha))^(-rq_alpha)
 *   3        periodic: exp(-2 sum_c sin(pi (a_c - b_c) / period)^2 / lengthscale_c^2)
 *   4        linear: (1 + sum_c (a_c - centre_c) (b_c - centre_c) / lengthscale_c^2) / m
 *   5, 6, 7  Matern 1/2, 3/2 and 5/2, as above
 *   8        constant: 1; it reads no column
 *
 * The number m is the mean of the numerator for a = b over the unit cube: linear leaves expect inputs
 * in [0, 1].
 *
 * Hyperparameters follow the order of the leaves, and within a leaf the order of the columns. In a
 * product, fix all standard deviations but one to 1, because only their product matters. The steps
 * 1, 2, 3, 0, -1 are leaf 1 plus the product of the leaves 2 and 3.
 *
 * @param y, mu, X, sigma_n see slayr_matern_lpdf
 * @param steps postfix order: l > 0 for leaf l, 0 for a product, -1 for a sum; 2 L - 1
 * @param kind kinds of the leaves; L
 * @param reads 1 where the leaf reads the column, else 0; L x D
 * @param sigma_f standard deviations of the leaves, >= 0; L
 * @param lengthscale length-scales, > 0, one for each 1 in reads, row by row
 * @param period periods of the periodic leaves, > 0
 * @param rq_alpha shapes of the rational quadratic leaves, > 0
 * @param centre centres of the linear leaves, one for each column that they read
 * @return log density
 */
real slayr_composite_lpdf(vector y, vector mu, data matrix X, data array[] int steps,
                          data array[] int kind, data array[,] int reads, vector sigma_f,
                          vector lengthscale, vector period, vector rq_alpha, vector centre,
                          real sigma_n);

/**
 * Log density with sums and products of kernels, and one standard deviation of the noise for each
 * value:
 *
 *   log N(y | mu, K + S),   S_ii = sigma_n[i]^2.
 *
 * @param y, mu, X see slayr_matern_lpdf
 * @param steps, kind, reads, sigma_f, lengthscale, period, rq_alpha, centre see the function with
 * one standard deviation
 * @param sigma_n standard deviations of the noise, >= 0; N
 * @return log density
 */
real slayr_composite_lpdf(vector y, vector mu, data matrix X, data array[] int steps,
                          data array[] int kind, data array[,] int reads, vector sigma_f,
                          vector lengthscale, vector period, vector rq_alpha, vector centre,
                          vector sigma_n);

/**
 * Covariance matrix of the function at all pairs of points, for generated quantities: it has no
 * gradient.
 *
 *   K_ij = sigma_f^2 M_p(sqrt((2 p + 1) h))
 *
 * @param X, sigma_f, lengthscale, p see slayr_matern_lpdf
 * @return N x N
 */
matrix slayr_matern_cov(data matrix X, real sigma_f, vector lengthscale, data int p);

/**
 * Covariance matrix of the function at all pairs of points, for generated quantities: it has no
 * gradient.
 *
 *   K_ij = sigma_f^2 exp(-h / 2)
 *
 * @param X, sigma_f, lengthscale see slayr_matern_lpdf
 * @return N x N
 */
matrix slayr_exp_quad_cov(data matrix X, real sigma_f, vector lengthscale);

/**
 * Covariance matrix of the function at all pairs of points, for generated quantities: it has no
 * gradient. For a leaf,
 *
 *   K_ij = sigma_f^2 k(x_i, x_j).
 *
 * @param X, steps, kind, reads, sigma_f, lengthscale, period, rq_alpha, centre see
 * slayr_composite_lpdf
 * @return N x N
 */
matrix slayr_composite_cov(data matrix X, data array[] int steps, data array[] int kind,
                           data array[,] int reads, vector sigma_f, vector lengthscale,
                           vector period, vector rq_alpha, vector centre);

/**
 * Posterior of the function at M new points, minus its prior mean there:
 *
 *   mean = B' (A + S)^-1 (y - mu),   cov = C - B' (A + S)^-1 B,   S_ii = sigma_n[i]^2,
 *
 * with the covariances A of the observed points, C of the new points, and B between them.
 *
 * @param residual y - mu; N
 * @param K covariances of the observed points, followed by the new ones; (N + M) x (N + M)
 * @param sigma_n standard deviations of the noise; N
 * @return (mean, cov); M, M x M
 */
tuple(vector, matrix) slayr_posterior(vector residual, matrix K, vector sigma_n) {
  int N = size(residual);
  int all = rows(K);
  matrix[N, N] L = cholesky_decompose(add_diag(K[1 : N, 1 : N], square(sigma_n)));
  matrix[N, all - N] V = mdivide_left_tri_low(L, K[1 : N, (N + 1) : all]);
  vector[N] whitened = mdivide_left_tri_low(L, residual);
  return (V' * whitened, K[(N + 1) : all, (N + 1) : all] - crossprod(V));
}

/**
 * Log density of the observations, the function integrated out:
 * log N(y | mu, K + sigma_n^2 I).
 *
 * Declared only: accelerated/hierarchical.hpp defines it, with its derivatives.
 *
 * @param y observations; N
 * @param mu constant mean
 * @param sigma_n noise standard deviation
 * @param features of all pairs of lower_triangle(N)
 * @param ... hyperparameters and structure, see hierarchical
 * @return log density
 */
real hierarchical_log_marginal(data vector y, real mu, real sigma_n,
                               data array[] matrix features, real sigma_f,
                               vector gamma, vector rho, vector lengthscale,
                               vector rq_alpha, data array[] int levels,
                               data matrix lineage, data int base,
                               data int p, data int add);

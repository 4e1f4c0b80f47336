/**
 * Log density of the observations, the function integrated out:
 * log N(y | mu, K + sigma_n^2 I).
 *
 * Declared only: accelerated/fm.hpp defines it, with its derivatives.
 *
 * @param y observations; N
 * @param mu constant mean
 * @param sigma_n noise standard deviation
 * @param features, W of all pairs of triangle_and_diagonal(N)
 * @param ... hyperparameters and structure, see fm_cov
 * @return log density
 */
real fm_log_marginal(data vector y, real mu, real sigma_n,
                     data array[] matrix features, data matrix W,
                     real sigma_f, vector lengthscale, vector alpha,
                     vector beta, vector weights, vector bias, vector gamma,
                     vector rho, vector rq_alpha, data vector lambda,
                     data array[] int graph_of, data matrix lineage,
                     data int modulator, data int combine, data real tau,
                     data int base, data int p, data int add);

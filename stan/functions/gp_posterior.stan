/**
 * Posterior of a Gaussian process with constant mean mu, covariance K + S = L L' at the observed
 * points, where S is the diagonal matrix of noise_variance, and covariance B between the observed
 * and the new points. It needs two triangular solves:
 *
 *   V = L \ B,   A = V' / L,   mean = mu + A (y - mu),   cov = K_new - V' V,
 *
 * (slayR notes, "Posterior predictions computation", corrected: the middle factor of the second
 * term of cov is the inverse of K + S).
 */

/**
 * Cholesky factor of the covariance of the observations:
 *
 *   L L' = K + S.
 *
 * @param packed covariances of the function, in the order of lower_triangle; N (N - 1) / 2
 * @param variance variances of the observations: of the function, plus the noise; N
 * @return L; N x N
 */
matrix gp_factor(vector packed, vector variance) {
  return cholesky_decompose(symmetric_matrix(packed, variance));
}

/**
 * Reject targets that the likelihood cannot have. Those that it can have, with their known errors e,
 * are
 *
 *   y_i in R, e_i >= 0     without warp,
 *   y_i in R, e_i = 0      with warp,
 *   y_i^2 = 1, e_i = 0     binary, without warp.
 *
 * After a warp, the variance of an error would depend on y, and the density would not integrate to
 * one.
 *
 * @param observed see noise_variance
 * @param n_warp 1 with a warp, else 0
 */
void check_targets(data tuple(vector, vector, real, int) observed, data int n_warp) {
  int binary = observed.4;
  int errors = max(observed.2) > 0;
  if (n_warp && errors) {
    reject("y_sd is above 0 for an observation, and n_warp is 1; use n_warp = 0, or y_sd = 0");
  }
  if (binary && errors) {
    reject("y_sd is above 0 for an observation, and binary is 1; use binary = 0, or y_sd = 0");
  }
  if (binary && n_warp) {
    reject("n_warp is 1, and binary is 1; use n_warp = 0, or binary = 0");
  }
  for (value in observed.1) {
    if (binary && abs(value) != 1) {
      reject("y is ", value, " for an observation, and binary is 1; use 1 or -1");
    }
  }
}

/**
 * Variances of the noise of T(y). Known errors e are 0 under a warp, see check_targets:
 *
 *   S_ii = sigma_n^2 + floor^2 + e_i^2.
 *
 * @param observed y, their known errors, the smallest noise standard deviation (floor), and binary
 * @param sigma_n noise standard deviation
 * @return N
 */
vector noise_variance(data tuple(vector, vector, real, int) observed, real sigma_n) {
  return square(sigma_n) + square(observed.3) + square(observed.2);
}

/**
 * Targets with Gaussian noise, and the variances of this noise,
 *
 *   T(y_i),   S_ii.
 *
 * For binary observations they are those of expectation propagation; see probit_targets.
 *
 * @param observed, sigma_n see noise_variance
 * @param warp see warped
 * @param mu constant mean
 * @param packed, variance covariances and variances of the function, see gp_factor
 * @return (targets, variances); N, N
 */
tuple(vector, vector) gp_targets(data tuple(vector, vector, real, int) observed, vector warp,
                                 real sigma_n, real mu, vector packed, vector variance) {
  if (observed.4) {
    return probit_targets(observed.1, mu, packed, variance);
  }
  return (warped(observed.1, warp), noise_variance(observed, sigma_n));
}

/**
 * Log density of the observations with the function integrated out:
 *
 *   log N(T(y) | mu, K + S) + sum_i log T'(y_i),
 *
 * where K is the covariance of the function and S the diagonal matrix of noise_variance; of several
 * targets at the pivot of T one counts in the sum, see log_jacobian_of_warp. For binary observations it is
 * the Laplace approximation probit_log_marginal.
 *
 * @param observed, sigma_n see noise_variance
 * @param warp see warped
 * @param mu constant mean
 * @param packed, variance covariances and variances of the function, see gp_factor
 * @return log density
 */
real gp_log_marginal(data tuple(vector, vector, real, int) observed, vector warp, real mu,
                     vector packed, vector variance, real sigma_n) {
  int N = size(observed.1);
  if (observed.4) {
    return probit_log_marginal(observed.1, mu, packed, variance);
  }
  matrix[N, N] L = gp_factor(packed, variance + noise_variance(observed, sigma_n));
  return multi_normal_cholesky_lpdf(warped(observed.1, warp) | rep_vector(mu, N), L)
         + log_jacobian_of_warp(observed.1, warp);
}

/**
 * Whitened covariances between observed and new points; 0 without observations:
 *
 *   V = L \ B.
 *
 * @param L Cholesky factor of the covariance of the observations; N x N
 * @param cross covariances in the order of rectangle(N, M); N M
 * @param M number of new points
 * @param prior_only 1: no observations
 * @return V; N x M
 */
matrix gp_solve(matrix L, vector cross, int M, int prior_only) {
  int N = rows(L);
  if (prior_only) {
    return rep_matrix(0, N, M);
  }
  return mdivide_left_tri_low(L, to_matrix(cross, N, M));
}

/**
 * Mean of the latent function at new points:
 *
 *   mu + (V' / L) (y - mu).
 *
 * @param V L \ B; N x M
 * @param L Cholesky factor of the covariance of the observations; N x N
 * @param residual y - mu; N
 * @param mu constant mean
 * @return M
 */
vector gp_mean(matrix V, matrix L, vector residual, real mu) {
  return mu + mdivide_right_tri_low(V', L) * residual;
}

/**
 * Standard deviation of the latent function at new points, with the prior variances v:
 *
 *   sqrt(max(v_j - sum_i V_ij^2, 0)).
 *
 * A variance that rounding makes negative (about -1e-16, at an observed point without noise) is
 * replaced by 0.
 *
 * @param V L \ B; N x M
 * @param prior_variance v, of the function at the new points; M
 * @return M
 */
vector gp_sd(matrix V, vector prior_variance) {
  return sqrt(fmax(prior_variance - columns_dot_self(V)', 0));
}

/**
 * Covariance of the latent function at new points:
 *
 *   K_new - V' V.
 *
 * @param V L \ B; N x M
 * @param K_new prior covariance of the function at the new points; M x M
 * @return M x M
 */
matrix gp_cov(matrix V, matrix K_new) {
  return K_new - crossprod(V);
}

/**
 * Inverse of the covariance of the observations, for leave-one-out. Predictions do not use it.
 *
 *   P = (K + S)^-1 = (L^-1)' L^-1.
 *
 * @param L Cholesky factor of the covariance; N x N
 * @return P; N x N
 */
matrix gp_precision(matrix L) {
  return crossprod(mdivide_left_tri_low(L, identity_matrix(rows(L))));
}

/**
 * Predictive distribution of each observation given all others, with the function integrated out
 * (Sundararajan & Keerthi 2001; Rasmussen & Williams 2006, eqs. 5.10-5.12):
 *
 *   mean_i = y_i - [P (y - mu)]_i / P_ii,   sd_i = 1 / sqrt(P_ii).
 *
 * @param precision P, see gp_precision; N x N
 * @param y observations; N
 * @param mu constant mean
 * @return (means, standard deviations); N, N
 */
tuple(vector, vector) gp_leave_one_out(matrix precision, vector y, real mu) {
  vector[size(y)] variance = inv(diagonal(precision));
  return (y - variance .* (precision * (y - mu)), sqrt(variance));
}

/**
 * Log predictive density of each observation given all others:
 *
 *   -(y_i - mean_i)^2 / (2 sd_i^2) - log(sd_i) - log(2 pi) / 2.
 *
 * @param y observations; N
 * @param others means and standard deviations from gp_leave_one_out; N, N
 * @return N
 */
vector gp_log_lik(vector y, tuple(vector, vector) others) {
  return -0.5 * square((y - others.1) ./ others.2) - log(others.2) - 0.5 * log(2 * pi());
}

/**
 * Replicated observations. Each is drawn from its predictive distribution given all others, so that
 * it does not depend on the observation it is compared with. Without observations: one joint draw
 * of the prior predictive distribution. With z ~ Normal(0, I),
 *
 *   mean_i + sd_i z_i     with observations,
 *   mu + [L z]_i          without observations.
 *
 * @param L Cholesky factor of the covariance of the observations; N x N
 * @param mu constant mean
 * @param others means and standard deviations from gp_leave_one_out; N, N
 * @param prior_only 1: no observations
 * @return N
 */
vector gp_replicate_rng(matrix L, real mu, tuple(vector, vector) others, int prior_only) {
  vector[rows(L)] z = to_vector(normal_rng(rep_vector(0, rows(L)), rep_vector(1, rows(L))));
  return prior_only ? mu + L * z : others.1 + others.2 .* z;
}

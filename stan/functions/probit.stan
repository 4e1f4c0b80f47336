/**
 * Binary observations of a latent Gaussian process: P(y_i = 1) = Phi(f_i), y_i in {-1, 1}.
 *
 * The density that chains follow has the latent function integrated out by Laplace's approximation
 * at its mode (Rasmussen & Williams 2006, section 3.4), whose derivatives are cheap: see
 * probit_log_marginal. K is the covariance of the latent function, g the gradient of the sum of
 * log Phi(y_i f_i), and W the diagonal matrix of the negative second derivatives.
 *
 * log_density and predictions use expectation propagation, which is far more accurate: see
 * probit_targets and probit_log_evidence.
 */

/**
 * Derivatives of log Phi(y_i f_i), with z_i = y_i f_i (Rasmussen & Williams 2006, eq. 3.16):
 *
 *   g_i = y_i q_i,   W_ii = q_i (q_i + z_i),   q_i = N(z_i | 0, 1) / Phi(z_i).
 *
 * @param y 1 or -1; N
 * @param f latent function; N
 * @return (first derivatives, negative second derivatives); N, N
 */
tuple(vector, vector) probit_derivatives(vector y, vector f) {
  vector[size(y)] z = y .* f;
  vector[size(y)] ratio;
  for (i in 1 : size(y)) {
    ratio[i] = exp(std_normal_lpdf(z[i]) - std_normal_lcdf(z[i]));
  }
  return (y .* ratio, ratio .* (ratio + z));
}

/**
 * Cholesky factor of B:
 *
 *   L L' = B = I + W^(1/2) K W^(1/2).
 *
 * @param K covariance of the latent function; N x N
 * @param root diagonal of W^(1/2); N
 * @return N x N
 */
matrix probit_factor(matrix K, vector root) {
  return cholesky_decompose(add_diag(quad_form_diag(K, root), 1));
}

/**
 * Log density of the latent function and the observations, without terms that do not depend on the
 * latent function:
 *
 *   sum_i log Phi(y_i f_i) - a' (f - mu) / 2.
 *
 * @param y 1 or -1; N
 * @param a K^-1 (f - mu); N
 * @param f latent function; N
 * @param mu constant mean
 * @return log density
 */
real probit_objective(vector y, vector a, vector f, real mu) {
  real value = -0.5 * dot_product(a, f - mu);
  for (i in 1 : size(y)) {
    value += std_normal_lcdf(y[i] * f[i]);
  }
  return value;
}

/**
 * Mode of the latent function by Newton's method (Rasmussen & Williams 2006, algorithm 3.1), with
 * halved steps where a full one does not improve the objective. It is the fixed point of
 *
 *   f = mu + K a,   a = b - W^(1/2) B^-1 W^(1/2) K b,   b = W (f - mu) + g.
 *
 * @param y 1 or -1; N
 * @param mu constant mean
 * @param packed, variance covariances and variances of the function, see gp_factor
 * @return f; N
 */
vector probit_mode(vector y, real mu, vector packed, vector variance) {
  int N = size(y);
  matrix[N, N] K = symmetric_matrix(packed, variance);
  vector[N] a = rep_vector(0, N);
  vector[N] f = rep_vector(mu, N);
  real value = probit_objective(y, a, f, mu);
  for (step in 1 : 50) {
    tuple(vector[N], vector[N]) by_f = probit_derivatives(y, f);
    vector[N] root = sqrt(by_f.2);
    matrix[N, N] L = probit_factor(K, root);
    vector[N] b = by_f.2 .* (f - mu) + by_f.1;
    vector[N] direction = b
                          - root
                            .* mdivide_right_tri_low(mdivide_left_tri_low(L, root .* (K * b))', L)'
                          - a;
    real size_of_step = 1;
    real before = value;
    while (1) {
      vector[N] a_next = a + size_of_step * direction;
      vector[N] f_next = mu + K * a_next;
      value = probit_objective(y, a_next, f_next, mu);
      if (value >= before || size_of_step < 1e-3) {
        a = a_next;
        f = f_next;
        break;
      }
      size_of_step /= 2;
    }
    if (abs(value - before) < 1e-14 * (1 + abs(value))) {
      break;
    }
  }
  return f;
}

/**
 * Targets and variances of a Gaussian likelihood whose posterior has the moments of the probit one,
 * by expectation propagation (Rasmussen & Williams 2006, section 3.6), all factors at once, with
 * damping. Targets t and variances v are the fixed point of
 *
 *   1 / v_i = 1 / c_i - 1 / s_i,              t_i / v_i = e_i / c_i - m_i / s_i,
 *   e_i = m_i + s_i g_i / sqrt(1 + s_i),      c_i = s_i - s_i^2 W_ii / (1 + s_i),
 *
 * where m_i and s_i are mean and variance of f_i without observation i, and probit_derivatives has
 * g_i and W_ii at m_i / sqrt(1 + s_i). The sites of many close observations oscillate unless only
 * a share of each change is made; it becomes smaller while the largest change does not decrease.
 *
 * Far from the boundary the mode of the latent function underestimates its size: at one observation
 * of a wide prior, Laplace's approximation predicts the same outcome with a probability of 3/4.
 *
 * @param y 1 or -1; N
 * @param mu, packed, variance see probit_mode
 * @return (t, v); N, N
 */
tuple(vector, vector) probit_targets(vector y, real mu, vector packed, vector variance) {
  int N = size(y);
  matrix[N, N] K = symmetric_matrix(packed, variance);
  vector[N] precision = rep_vector(0, N);
  vector[N] shift = rep_vector(0, N); // precision times target
  vector[N] small = 1e-3 * fmin(1, inv(variance));
  real share = 0.7;
  real last = positive_infinity();
  for (step in 1 : 500) {
    matrix[N, N] V = mdivide_left_tri_low(probit_factor(K, sqrt(precision)),
                                          diag_pre_multiply(sqrt(precision), K));
    vector[N] b = shift - mu * precision;
    vector[N] marginal_variance = diagonal(K) - columns_dot_self(V)';
    vector[N] f = mu + K * b - V' * (V * b);
    // Without the observation itself:
    vector[N] cavity_variance = inv(inv(marginal_variance) - precision);
    vector[N] cavity_mean = cavity_variance .* (f ./ marginal_variance - shift);
    vector[N] scale = sqrt(1 + cavity_variance);
    tuple(vector[N], vector[N]) by_z = probit_derivatives(y, cavity_mean ./ scale);
    vector[N] mean_next = cavity_mean + cavity_variance .* by_z.1 ./ scale;
    vector[N] variance_next = cavity_variance - square(cavity_variance ./ scale) .* by_z.2;
    vector[N] precision_next = fmax(inv(variance_next) - inv(cavity_variance), 1e-10);
    vector[N] change = precision_next - precision;
    real largest = max(append_row(abs(change) ./ (small + precision), 0));
    if (step > 2) {
      share = fmin(fmax((largest > 0.9 * last ? 0.7 : 1.05) * share, 0.2), 1);
    }
    last = largest;
    real part = step == 1 ? 1 : share;
    shift += part * (mean_next ./ variance_next - cavity_mean ./ cavity_variance - shift);
    precision += part * change;
    if (largest < 1e-5) {
      break;
    }
  }
  return (shift ./ precision, inv(precision));
}

/**
 * Laplace approximation of the log probability of the observations (Rasmussen & Williams 2006,
 * eq. 3.32), with f of probit_mode and B of probit_factor:
 *
 *   sum_i log Phi(y_i f_i) - g' (f - mu) / 2 - log|B| / 2,   f = mu + K g.
 *
 * @param y 1 or -1; N
 * @param mu, packed, variance see probit_mode
 * @return log probability
 */
real probit_log_marginal(vector y, real mu, vector packed, vector variance) {
  vector[size(y)] f = probit_mode(y, mu, packed, variance);
  tuple(vector[size(y)], vector[size(y)]) by_f = probit_derivatives(y, f);
  matrix[size(y), size(y)] L = probit_factor(symmetric_matrix(packed, variance), sqrt(by_f.2));
  return probit_objective(y, by_f.1, f, mu) - sum(log(diagonal(L)));
}

/**
 * Predictive distributions of latent values plus standard-normal noise, given all other
 * observations:
 *
 *   mean_i,   sqrt(max(sd_i^2 - variance_i, 0) + 1).
 *
 * @param others means and standard deviations from gp_leave_one_out, for the targets of
 *   probit_targets; N, N
 * @param variance variances of these targets; N
 * @return (means, standard deviations); N, N
 */
tuple(vector, vector) probit_leave_one_out(tuple(vector, vector) others, vector variance) {
  return (others.1, sqrt(fmax(square(others.2) - variance, 0) + 1));
}

/**
 * Log probability of each observation given all others:
 *
 *   log Phi(y_i mean_i / sd_i).
 *
 * @param y 1 or -1; N
 * @param others from probit_leave_one_out; N, N
 * @return N
 */
vector probit_log_lik(vector y, tuple(vector, vector) others) {
  vector[size(y)] value;
  for (i in 1 : size(y)) {
    value[i] = std_normal_lcdf(y[i] * others.1[i] / others.2[i]);
  }
  return value;
}

/**
 * Log probability of the observations by expectation propagation (Rasmussen & Williams 2006,
 * eq. 3.65), with targets t and variances v of probit_targets, V = diag(v), and mean m_i and
 * variance s_i of f_i without observation i:
 *
 *   log N(t | mu, K + V) + sum_i [log Phi(y_i m_i / sqrt(1 + s_i)) - log N(t_i | m_i, s_i + v_i)].
 *
 * @param y 1 or -1; N
 * @param mu constant mean
 * @param targets t and v; N, N
 * @param factor Cholesky factor of K + V; N x N
 * @param others m_i and sqrt(s_i + v_i), from gp_leave_one_out for the targets; N, N
 * @return log probability
 */
real probit_log_evidence(vector y, real mu, tuple(vector, vector) targets, matrix factor,
                         tuple(vector, vector) others) {
  return multi_normal_cholesky_lpdf(targets.1 | rep_vector(mu, size(y)), factor)
         + sum(probit_log_lik(y, probit_leave_one_out(others, targets.2)))
         - normal_lpdf(targets.1 | others.1, others.2);
}

/**
 * Signs:
 *
 *   -1     for x_i < 0,
 *   1      for x_i >= 0.
 */
vector signs(vector x) {
  vector[size(x)] s;
  for (i in 1 : size(x)) {
    s[i] = x[i] < 0 ? -1 : 1;
  }
  return s;
}

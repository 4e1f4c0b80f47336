/**
 * Log densities of stan/export, and the same with Stan's own functions, for benchmarks and tests. The
 * last column of the inputs has the periodic and the linear leaf.
 */
functions {
  #include slayr.stan
}
data {
  int<lower=1> N;
  int<lower=1> D;
  matrix[N, D] X;
  vector[N] y;
  vector<lower=0>[N] weight; // of sigma_n
  int<lower=1, upper=4> kernel; // 1: Matern, 2: squared-exponential, 3: SE + PER * MAT32, 4: LIN * RQ + C
  int<lower=0, upper=2> p;
  int<lower=0, upper=1> builtin;
  int<lower=0, upper=1> check; // 1: write the generated quantities
  array[5] int steps; // arguments of slayr_composite
  array[3] int kind;
  array[3, D] int reads;
}
transformed data {
  array[N] vector[D] x;
  array[N] real last = to_array_1d(X[ : , D]);
  matrix[N, N] squared; // differences of the last column
  for (i in 1 : N) {
    x[i] = X[i]';
    squared[i] = square(X[i, D] - X[ : , D]');
  }
}
parameters {
  real alpha;
  vector[D] beta;
  vector<lower=0>[2] sigma_f;
  vector<lower=0>[D] lengthscale;
  vector<lower=0>[2] further; // length-scales of the second and third leaf
  real<lower=0> shape; // period, or the shape of the rational quadratic leaf
  real centre;
  real<lower=0> sigma_n;
}
transformed parameters {
  vector[N] mu = alpha + X * beta;
  vector[N] noise = sigma_n * weight;
  vector[3] sd = kernel == 3 ? [sigma_f[1], 1, sigma_f[2]]' : [1, sigma_f[1], sigma_f[2]]';
}
model {
  array[D] real scales = to_array_1d(lengthscale);
  if (!builtin) {
    if (kernel == 1) {
      target += slayr_matern_lpdf(y | mu, X, sigma_f[1], lengthscale, noise, p);
    } else if (kernel == 2) {
      target += slayr_exp_quad_lpdf(y | mu, X, sigma_f[1], lengthscale, noise);
    } else if (kernel == 3) {
      target += slayr_composite_lpdf(y | mu, X, steps, kind, reads, sd,
                                     append_row(lengthscale, further), [shape]', rep_vector(shape, 0),
                                     rep_vector(centre, 0), noise);
    } else {
      target += slayr_composite_lpdf(y | mu, X, steps, kind, reads, sd, further,
                                     rep_vector(shape, 0), [shape]', [centre]', noise);
    }
  } else {
    matrix[N, N] K;
    if (kernel == 1 && p == 0) {
      K = gp_exponential_cov(x, sigma_f[1], scales);
    } else if (kernel == 1 && p == 1) {
      // One length-scale: several give wrong results before Stan 2.36.
      K = gp_matern32_cov(x, sigma_f[1], lengthscale[1]);
    } else if (kernel == 1) {
      K = gp_matern52_cov(x, sigma_f[1], scales);
    } else if (kernel == 2) {
      K = gp_exp_quad_cov(x, sigma_f[1], scales);
    } else if (kernel == 3) {
      K = gp_exp_quad_cov(x, sd[1], scales)
          + gp_periodic_cov(last, sd[2], further[1], shape) .* gp_matern32_cov(last, sd[3], further[2]);
    } else {
      vector[N] u = (X[ : , D] - centre) / further[1];
      real mean_variance = 1 + (square(0.5 - centre) + 1.0 / 12) / square(further[1]);
      K = (1 + u * u') / mean_variance
          .* (square(sd[2]) * (1 + squared / (2 * shape * square(further[2]))) .^ -shape)
          + square(sd[3]);
    }
    target += multi_normal_cholesky_lpdf(y | mu, cholesky_decompose(add_diag(K, square(noise))));
  }
}
generated quantities {
  vector[check] log_density; // all arguments are numbers here
  matrix[N * check, N * check] K;
  if (check && kernel == 1) {
    log_density[1] = slayr_matern_lpdf(y | mu, X, sigma_f[1], lengthscale, noise, p);
    K = slayr_matern_cov(X, sigma_f[1], lengthscale, p);
  } else if (check && kernel == 2) {
    log_density[1] = slayr_exp_quad_lpdf(y | mu, X, sigma_f[1], lengthscale, noise);
    K = slayr_exp_quad_cov(X, sigma_f[1], lengthscale);
  } else if (check) {
    vector[kernel == 3 ? D + 2 : 2] scales = kernel == 3 ? append_row(lengthscale, further) : further;
    vector[kernel == 3] period = rep_vector(shape, kernel == 3);
    vector[kernel == 4] rq_alpha = rep_vector(shape, kernel == 4);
    vector[kernel == 4] middle = rep_vector(centre, kernel == 4);
    log_density[1] = slayr_composite_lpdf(y | mu, X, steps, kind, reads, sd, scales, period, rq_alpha,
                                          middle, noise);
    K = slayr_composite_cov(X, steps, kind, reads, sd, scales, period, rq_alpha, middle);
  }
}

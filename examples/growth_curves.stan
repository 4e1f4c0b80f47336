/**
 * Growth curves of two groups: a line for each, and a smooth deviation from it. The deviations of the
 * groups are independent and share their hyperparameters.
 */
functions {
  #include slayr.stan
}
data {
  array[2] int<lower=1> N; // observations of each group
  vector[sum(N)] t; // times, the first group before the second
  vector[sum(N)] y; // sizes
  int<lower=0> M; // new times
  vector[M] t_new;
  int<lower=0, upper=1> builtin; // 1: with Stan's own functions, to compare
}
transformed data {
  array[2] int first = {1, N[1] + 1};
  array[2] int last = {N[1], sum(N)};
}
parameters {
  vector[2] intercept;
  vector[2] slope;
  real<lower=0> sigma_f; // standard deviation of the deviations
  real<lower=0> lengthscale; // in units of the times
  real<lower=0> sigma_n; // standard deviation of the noise
}
transformed parameters {
  vector[sum(N)] line;
  for (g in 1 : 2) {
    line[first[g] : last[g]] = intercept[g] + slope[g] * t[first[g] : last[g]];
  }
}
model {
  intercept ~ normal(0, 5);
  slope ~ normal(0, 1);
  sigma_f ~ normal(0, 1);
  lengthscale ~ inv_gamma(5, 10);
  sigma_n ~ normal(0, 0.5);
  for (g in 1 : 2) {
    int a = first[g];
    int b = last[g];
    if (builtin) {
      matrix[N[g], N[g]] K = gp_matern52_cov(to_array_1d(t[a : b]), sigma_f, lengthscale);
      target += multi_normal_cholesky_lpdf(y[a : b] | line[a : b],
                                           cholesky_decompose(add_diag(K, square(sigma_n))));
    } else {
      target += slayr_matern_lpdf(y[a : b] | line[a : b], to_matrix(t[a : b], N[g], 1), sigma_f,
                                  [lengthscale]', sigma_n, 2);
    }
  }
}
generated quantities {
  matrix[M, 2] size_new; // mean of the noise-free size at the new times
  for (g in 1 : 2) {
    int a = first[g];
    int b = last[g];
    matrix[N[g] + M, 1] both = to_matrix(append_row(t[a : b], t_new), N[g] + M, 1);
    matrix[N[g] + M, N[g] + M] K = slayr_matern_cov(both, sigma_f, [lengthscale]', 2);
    vector[M] deviation = slayr_posterior(y[a : b] - line[a : b], K, rep_vector(sigma_n, N[g])).1;
    size_new[ : , g] = intercept[g] + slope[g] * t_new + deviation;
  }
}

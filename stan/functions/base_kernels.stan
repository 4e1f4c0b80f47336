/**
 * Codes of the stationary kernels of one squared distance. Programs take them as data.
 */
int SQUARED_EXPONENTIAL() {
  return 1;
}

int RATIONAL_QUADRATIC() {
  return 2;
}

int MATERN() {
  return 3;
}

/**
 * Correlations of pairs at given squared distances. For M_p see matern.
 *
 *   exp(-h / 2)                    squared exponential,
 *   (1 + h / (2 alpha))^-alpha     rational quadratic,
 *   M_p(sqrt((2 p + 1) h))         Matern.
 *
 * @param h squared distances, divided by the squared length-scale; n_pairs
 * @param base SQUARED_EXPONENTIAL, RATIONAL_QUADRATIC or MATERN
 * @param p order of the Matern kernel, nu = p + 1/2
 * @param rq_alpha alpha; 1 for RATIONAL_QUADRATIC, else empty
 * @return correlations; n_pairs
 */
vector base_kernel(vector h, data int base, data int p, vector rq_alpha) {
  if (base == SQUARED_EXPONENTIAL()) {
    return exp(-0.5 * h);
  }
  if (base == RATIONAL_QUADRATIC()) {
    return exp(-rq_alpha[1] * log1p(h / (2 * rq_alpha[1])));
  }
  return matern(h, p);
}

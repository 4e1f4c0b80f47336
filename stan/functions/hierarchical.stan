/**
 * Kernel for conditional spaces (Hutter & Osborne 2013). Dimension i has the
 * squared distance
 *
 *   0                                     inactive in both points,
 *   omega_i^2                             active in exactly one,
 *   omega_i^2 (2 - 2 cos(pi rho_i dx))    active in both, real,
 *   omega_i^2 rho_i^2 2 / (1 + (m - 1) (1 - rho_i)^2)
 *                                         active in both, different of m
 *                                         levels,
 *
 * the last being that of the document's embedding (its distance omits rho),
 * with omega_i the product of gamma over i and its ancestors (eq. 6).
 */

/**
 * What the distances need that does not depend on parameters.
 *
 * @param A real coordinates in [0, 1], or indices of levels; N x D
 * @param active_A 1 where a dimension is active, else 0; N x D
 * @param B, active_B the same for the second set; M x D
 * @param levels number of levels of each dimension, 0 for a real one; D
 * @param pairs indices into A and B; 2 x n_pairs
 * @return three matrices, n_pairs x D: 1 where active in exactly one; 1 where
 *   active in both with different levels; pi dx / 2 where active in both and
 *   real
 */
array[] matrix hierarchical_features(data matrix A, data matrix active_A,
                                     data matrix B, data matrix active_B,
                                     data array[] int levels,
                                     data array[,] int pairs) {
  int n_pairs = size(pairs[1]);
  int D = cols(A);
  matrix[n_pairs, D] a = active_A[pairs[1]];
  matrix[n_pairs, D] b = active_B[pairs[2]];
  array[3] matrix[n_pairs, D] features;
  features[1] = abs(a - b);
  features[2] = rep_matrix(0, n_pairs, D);
  features[3] = rep_matrix(0, n_pairs, D);
  for (d in 1 : D) {
    for (k in 1 : n_pairs) {
      real dx = A[pairs[1, k], d] - B[pairs[2, k], d];
      if (a[k, d] * b[k, d] > 0) {
        if (levels[d] == 0) {
          features[3, k, d] = 0.5 * pi() * dx;
        } else {
          features[2, k, d] = dx != 0;
        }
      }
    }
  }
  return features;
}

/**
 * Correlations of pairs: a base kernel of the distance in every dimension,
 * combined by product or by sum.
 *
 * @param features from hierarchical_features; three n_pairs x D
 * @param levels number of levels of each dimension, 0 for a real one; D
 * @param lineage 1 where the G weights gamma belong to the dimension or to
 *   one of its ancestors, else 0; D x G
 * @param gamma weights in (0, 1); G
 * @param rho how much differing in value counts against differing in
 *   activity, in (0, 1); D
 * @param lengthscale length-scales of the distances; D
 * @param rq_alpha shape of the rational quadratic kernel; 1, else empty
 * @param base, p base kernel, see base_kernel
 * @param add 1: sum over dimensions, 0: product
 * @return correlations, at most 1 for the product, D for the sum; n_pairs
 */
vector hierarchical(data array[] matrix features, data array[] int levels,
                    data matrix lineage, vector gamma, vector rho,
                    vector lengthscale, vector rq_alpha, data int base,
                    data int p, data int add) {
  int n_pairs = rows(features[1]);
  int D = size(rho);
  vector[D] scale = square(exp(lineage * log(gamma)) ./ lengthscale);
  vector[n_pairs] k = rep_vector(!add, n_pairs);
  for (d in 1 : D) {
    vector[n_pairs] h;
    vector[n_pairs] k_d;
    if (levels[d] == 0) {
      h = 4 * square(sin(rho[d] * features[3][ : , d]));
    } else {
      h = 2 * square(rho[d]) / (1 + (levels[d] - 1) * square(1 - rho[d]))
          * features[2][ : , d];
    }
    k_d = base_kernel(scale[d] * (features[1][ : , d] + h), base, p,
                      rq_alpha);
    k = add ? k + k_d : k .* k_d;
  }
  return k;
}

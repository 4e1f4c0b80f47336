/**
 * Kernel for conditional spaces (Hutter & Osborne 2013). The squared distance in dimension i is
 *
 *   0                                                      inactive in both points,
 *   omega_i^2                                              active in exactly one,
 *   omega_i^2 (2 - 2 cos(pi rho_i dx))                     active in both, real,
 *   omega_i^2 rho_i^2 2 / (1 + (m - 1) (1 - rho_i)^2)      active in both, different of m levels,
 *
 * where omega_i is the product of gamma over i and its ancestors (eq. 6). The last case is the
 * distance of the embedding in the paper, whose distance formula omits rho.
 *
 * Tuple arguments:
 *
 *   hyper      gamma (G), weights in (0, 1)
 *              rho (D), scale of a difference in value relative to one in activity, in (0, 1)
 *              lengthscale (D), length-scales of the distances
 *              rq_alpha (1 for RATIONAL_QUADRATIC, else 0), see base_kernel
 *   structure  levels (D), number of levels of each dimension, 0 for a real one
 *              lineage (D x G), 1 where a weight is of the dimension or of an ancestor of it
 *              base, p, see base_kernel
 *              add, 1: sum over dimensions, 0: product
 */

/**
 * Parameter-free parts of the distances. With a_d = 1 where the input c_d is active, else 0,
 *
 *   F_{1d} = |a_d - a~_d|                    every dimension,
 *   F_{2d} = a_d a~_d                        different levels, else 0,
 *   F_{3d} = a_d a~_d pi (c_d - c~_d) / 2    real, else 0.
 *
 * @param A real inputs in [0, 1], or indices of levels; N x D
 * @param active_A 1 where a dimension is active, else 0; N x D
 * @param B, active_B the same for the second set; M x D
 * @param levels number of levels of each dimension, 0 for a real one; D
 * @param pairs indices into A and B; 2 x n_pairs
 * @return F; three matrices, n_pairs x D
 */
array[] matrix hierarchical_features(data matrix A, data matrix active_A, data matrix B,
                                     data matrix active_B, data array[] int levels,
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
 * Correlations of pairs: a base kernel k, see base_kernel, of the distance in each dimension,
 * combined by product or by sum:
 *
 *   prod_d k(h_d)     product,
 *   sum_d k(h_d)      sum.
 *
 * With the features F of hierarchical_features and the weights omega (eq. 6),
 *
 *   omega_d = prod_j gamma_j^{lineage_dj},
 *   h_d = (omega_d / lengthscale_d)^2 (F_{1d} + g_d),
 *   g_d = 4 sin(rho_d F_{3d})^2                                real,
 *   g_d = 2 rho_d^2 F_{2d} / (1 + (m_d - 1) (1 - rho_d)^2)     categorical with m_d levels.
 *
 * @param features from hierarchical_features; three n_pairs x D
 * @param hyper, structure see above
 * @return correlations, at most 1 for the product, D for the sum; n_pairs
 */
vector hierarchical(data array[] matrix features, tuple(vector, vector, vector, vector) hyper,
                    data tuple(array[] int, matrix, int, int, int) structure) {
  int add = structure.5;
  int n_pairs = rows(features[1]);
  int D = size(hyper.2);
  vector[D] rho = hyper.2;
  vector[D] scale = square(exp(structure.2 * log(hyper.1)) ./ hyper.3);
  vector[n_pairs] k = rep_vector(!add, n_pairs);
  for (d in 1 : D) {
    int m = structure.1[d];
    vector[n_pairs] h;
    vector[n_pairs] k_d;
    if (m == 0) {
      h = 4 * square(sin(rho[d] * features[3][ : , d]));
    } else {
      h = 2 * square(rho[d]) / (1 + (m - 1) * square(1 - rho[d])) * features[2][ : , d];
    }
    k_d = base_kernel(scale[d] * (features[1][ : , d] + h), structure.3, structure.4, hyper.4);
    k = add ? k + k_d : k .* k_d;
  }
  return k;
}

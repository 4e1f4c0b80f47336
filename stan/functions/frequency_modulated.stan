/**
 * Kernels for mixed spaces by frequency modulation (Oh, Gavves & Welling
 * 2021). Every discrete parameter is a graph whose Laplacian has eigenvalues
 * lambda_i and eigenvectors u_i; a function f of the frequency lambda and of
 * a distance t between the continuous parameters makes
 *
 *   k_p = sum_i u_i[v] u_i[v'] f(lambda_i, t),   k = prod_p k_p   (eq. 5).
 *
 * Equal eigenvalues share their f: a complete graph of any size has two.
 */
int LAPLACIAN() {
  return 1;
}

int POWER() {
  return 2;
}

int NEURAL() {
  return 3;
}

int DIFFUSION() {
  return 4;
}

int HIERARCHICAL() {
  return 5;
}

/**
 * Frequency modulation, and the comparison kernels of the supplement: a
 * squared-exponential kernel times, or plus, a kernel of the graphs alone.
 */
int MODULATED() {
  return 0;
}

int PRODUCT() {
  return 1;
}

int SUM() {
  return 2;
}

/**
 * Products of eigenvectors at the two vertices of every pair, added up over
 * equal eigenvalues.
 *
 * @param U_A eigenvectors at the vertices of the first set, the graphs side
 *   by side; N x (total number of vertices)
 * @param U_B the same for the second set
 * @param group_of distinct eigenvalue of each eigenvector, 1..G
 * @param G number of distinct eigenvalues over all graphs
 * @param pairs indices into U_A and U_B; 2 x n_pairs
 * @return n_pairs x G
 */
matrix vertex_weights(data matrix U_A, data matrix U_B,
                      data array[] int group_of, data int G,
                      data array[,] int pairs) {
  matrix[size(pairs[1]), G] W = rep_matrix(0, size(pairs[1]), G);
  for (i in 1 : size(group_of)) {
    W[ : , group_of[i]] += U_A[pairs[1], i] .* U_B[pairs[2], i];
  }
  return W;
}

/**
 * The same averaged over the vertices of every graph, for one pair of equal
 * points: each eigenvalue's share of the spectrum.
 *
 * @param graph_of graph of each distinct eigenvalue; G
 * @param group_of distinct eigenvalue of each eigenvector
 * @return 1 x G
 */
matrix mean_vertex_weights(data array[] int graph_of,
                           data array[] int group_of) {
  int G = size(graph_of);
  row_vector[G] count = rep_row_vector(0, G);
  matrix[1, G] W;
  for (i in 1 : size(group_of)) {
    count[group_of[i]] += 1;
  }
  for (g in 1 : G) {
    real vertices = 0;
    for (h in 1 : G) {
      vertices += graph_of[h] == graph_of[g] ? count[h] : 0;
    }
    W[1, g] = count[g] / vertices;
  }
  return W;
}

/**
 * What the continuous distances need that does not depend on parameters.
 *
 * @param A, B continuous coordinates; N x D, M x D
 * @param active_A, active_B 1 where active, else 0; N x D, M x D
 * @param modulator see above
 * @param pairs indices into A and B; 2 x n_pairs
 * @return three matrices, n_pairs x D: those of hierarchical_features for
 *   HIERARCHICAL, else squared differences and the squares of both sides
 */
array[] matrix continuous_features(data matrix A, data matrix active_A,
                                   data matrix B, data matrix active_B,
                                   data int modulator,
                                   data array[,] int pairs) {
  if (modulator == HIERARCHICAL()) {
    return hierarchical_features(A, active_A, B, active_B,
                                 rep_array(0, cols(A)), pairs);
  }
  return {squared_differences(A, B, pairs), square(A)[pairs[1]],
          square(B)[pairs[2]]};
}

/**
 * 1 - k_NN, with the arc-sine kernel of a neural network on inputs augmented
 * by 1 (Rasmussen & Williams 2006, eq. 4.29), S = diag(bias^2,
 * lengthscale^-2):
 *
 *   k_NN = 2/pi asin(2 c'S c~ / sqrt((1 + 2 c'S c)(1 + 2 c~'S c~))).
 *
 * asin has no derivative at 1; the arctangent of 2 c'S c~ over the root of
 * (1 + 2 c'S c)(1 + 2 c~'S c~) - (2 c'S c~)^2 >= 1 is the same angle.
 *
 * @param features squared differences, squares of both sides; n_pairs x D
 * @param lengthscale length-scales; D
 * @param bias standard deviation of the bias weight
 * @return n_pairs
 */
vector neural_distance(data array[] matrix features, vector lengthscale,
                       real bias) {
  int n_pairs = rows(features[1]);
  vector[size(lengthscale)] weight = inv_square(lengthscale);
  vector[n_pairs] a = square(bias) + features[2] * weight;
  vector[n_pairs] b = square(bias) + features[3] * weight;
  vector[n_pairs] c = 0.5 * (a + b - features[1] * weight);
  vector[n_pairs] rest = 1 + 2 * (a + b) + 4 * (a .* b - square(c));
  return 1 - 2 / pi() * atan2(2 * c, sqrt(fmax(rest, 1)));
}

/**
 * Distance t that modulates: r^2 for LAPLACIAN and DIFFUSION, r^tau for
 * POWER, 1 - k_NN for NEURAL, u - k_H for HIERARCHICAL, with
 * r^2 = sum_d ((c_d - c~_d) / lengthscale_d)^2, k_H the hierarchical kernel
 * and u its upper bound.
 *
 * r^tau has no derivative at 0 for tau < 2: coinciding points are masked, and
 * their derivative is a large finite number times 0.
 *
 * @param features from continuous_features; three n_pairs x D
 * @param lengthscale length-scales; D
 * @param bias see neural_distance; 1 for NEURAL, else empty
 * @param gamma, rho, rq_alpha, lineage, base, p, add see hierarchical; empty
 *   vectors except for HIERARCHICAL
 * @param modulator see above
 * @param tau exponent of the distance for POWER, in (0, 2]
 * @return n_pairs
 */
vector modulating_distance(data array[] matrix features, vector lengthscale,
                           vector bias, vector gamma, vector rho,
                           vector rq_alpha, data matrix lineage,
                           data int modulator, data real tau, data int base,
                           data int p, data int add) {
  int n_pairs = rows(features[1]);
  int D = size(lengthscale);
  if (modulator == NEURAL()) {
    return neural_distance(features, lengthscale, bias[1]);
  }
  if (modulator == HIERARCHICAL()) {
    return (add ? D : 1)
           - hierarchical(features, rep_array(0, D), lineage, gamma, rho,
                          lengthscale, rq_alpha, base, p, add);
  }
  if (modulator == POWER() && tau < 2) {
    vector[n_pairs] apart;
    for (k in 1 : n_pairs) {
      apart[k] = sum(features[1][k]) > 0;
    }
    return apart
           .* pow(features[1] * inv_square(lengthscale) + 1e-300, 0.5 * tau);
  }
  return features[1] * inv_square(lengthscale);
}

/**
 * Correlations of pairs on one graph: sum_g W_g f(lambda_g, t).
 *
 * @param W vertex weights of the graph's eigenvalues; n_pairs x G_p
 * @param lambda the graph's distinct eigenvalues; G_p
 * @param t modulating distances times alpha; n_pairs
 * @param beta strength of the frequency penalty
 * @param weights of the orders n = 1..N in
 *   f = sum_n weights_n (1 + beta lambda + t)^-n; N
 * @param modulator DIFFUSION: f = exp(-(1 + t) beta lambda) instead
 * @return n_pairs
 */
vector graph_correlation(data matrix W, data vector lambda, vector t,
                         real beta, vector weights, data int modulator) {
  int N = size(weights);
  vector[rows(W)] k = rep_vector(0, rows(W));
  for (g in 1 : size(lambda)) {
    if (modulator == DIFFUSION()) {
      k += W[ : , g] .* exp(-beta * lambda[g] * (1 + t));
    } else if (N == 1) {
      k += W[ : , g] ./ (t + (1 + beta * lambda[g]));
    } else {
      vector[rows(W)] u = inv(t + (1 + beta * lambda[g]));
      vector[rows(W)] f = weights[N] * u;
      for (i in 1 : (N - 1)) {
        f = u .* (weights[N - i] + f);
      }
      k += W[ : , g] .* f;
    }
  }
  return k;
}

/**
 * Correlations of pairs on all graphs and continuous parameters.
 *
 * @param W vertex weights, the graphs side by side; n_pairs x G
 * @param t from modulating_distance; n_pairs
 * @param lambda distinct eigenvalues, the graphs one after another; G
 * @param graph_of graph of each eigenvalue, ascending; G
 * @param alpha strengths of the modulation; P
 * @param beta strengths of the frequency penalty; P
 * @param weights of the orders, see graph_correlation; 1 unless POWER
 * @param modulator, combine see above; for PRODUCT and SUM t is r^2 and
 *   does not modulate
 * @return n_pairs
 */
vector frequency_modulated(data matrix W, vector t, data vector lambda,
                           data array[] int graph_of, vector alpha,
                           vector beta, vector weights, data int modulator,
                           data int combine) {
  int n_pairs = rows(W);
  vector[n_pairs] k = rep_vector(1, n_pairs);
  int start = 1;
  for (p in 1 : size(beta)) {
    int G_p = 0;
    for (g in 1 : size(graph_of)) {
      G_p += graph_of[g] == p;
    }
    {
      array[G_p] int of_graph = linspaced_int_array(G_p, start,
                                                    start + G_p - 1);
      vector[n_pairs] t_p = combine == MODULATED() ? alpha[p] * t
                            : rep_vector(0, n_pairs);
      k = k
          .* graph_correlation(W[ : , of_graph], lambda[of_graph], t_p,
                               beta[p], weights, modulator);
    }
    start += G_p;
  }
  if (combine == PRODUCT()) {
    return k .* exp(-0.5 * t);
  }
  if (combine == SUM()) {
    return k + exp(-0.5 * t);
  }
  return k;
}

/**
 * Covariances of pairs: modulating_distance, then frequency_modulated.
 *
 * @return n_pairs
 */
vector fm_cov(data array[] matrix features, data matrix W, real sigma_f,
              vector lengthscale, vector alpha, vector beta, vector weights,
              vector bias, vector gamma, vector rho, vector rq_alpha,
              data vector lambda, data array[] int graph_of,
              data matrix lineage, data int modulator, data int combine,
              data real tau, data int base, data int p, data int add) {
  vector[rows(W)] t = modulating_distance(features, lengthscale, bias, gamma,
                                          rho, rq_alpha, lineage, modulator,
                                          tau, base, p, add);
  return square(sigma_f)
         * frequency_modulated(W, t, lambda, graph_of, alpha, beta, weights,
                               modulator, combine);
}

/**
 * Kernels for mixed spaces by frequency modulation (Oh, Gavves & Welling 2021). Each discrete
 * parameter is a graph whose Laplacian has eigenvalues lambda_i and eigenvectors u_i. With a
 * function f of the frequency lambda and of a distance t between the continuous parameters,
 *
 *   k_p = sum_i u_i[v] u_i[v'] f(lambda_i, t),   k = prod_p k_p   (eq. 5).
 *
 * Equal eigenvalues share one evaluation of f: a complete graph of any size has two distinct ones.
 *
 * Tuple arguments:
 *
 *   pairs      features (three n_pairs x D, from continuous_features), W (n_pairs x G, from
 *              vertex_weights)
 *   hyper      sigma_f, signal standard deviation; distance; graphs
 *   distance   lengthscale (D), length-scales
 *              bias (1), standard deviation of the bias weight; empty unless NEURAL
 *              gamma (H), rho (D), rq_alpha (0 or 1), see hierarchical; empty unless HIERARCHICAL
 *   graphs     alpha (P), strengths of the modulation
 *              beta (P), strengths of the frequency penalty
 *              weights (1 unless POWER), weights of the orders, see graph_correlation
 *   structure  of the distance: modulator; tau, exponent of the distance for POWER, in (0, 2];
 *              lineage (D x H), base, p and add for HIERARCHICAL, see hierarchical
 *              of the graphs: modulator; combine; lambda (G), distinct eigenvalues, graph after
 *              graph; graph_of (G), the graph of each of them, ascending
 *
 * The next functions return the codes of the modulators. Programs take a code as data.
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
 * Codes of the combinations: frequency modulation, and the comparison kernels of the supplement,
 * which are a squared-exponential kernel times, or plus, a kernel of the graphs alone.
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
 * Reject data that the declarations allow, but not the kernels. Those need, with t and r^2 of
 * modulating_distance and the graph p_g of each eigenvalue,
 *
 *   p_g <= p_{g+1}     always,
 *   tau > 0            for POWER,
 *   orders = 1         unless POWER,
 *   H = 0              unless HIERARCHICAL,
 *   t = r^2            for PRODUCT and SUM.
 *
 * PRODUCT and SUM have no rq_alpha, which RATIONAL_QUADRATIC would need.
 *
 * @param modulator, combine, tau, base see above
 * @param orders number of orders, for POWER
 * @param H number of weights gamma, for HIERARCHICAL
 * @param graph_of graph of each distinct eigenvalue; G
 */
void check_modulation(data int modulator, data int combine, data int orders, data real tau,
                      data int H, data int base, data array[] int graph_of) {
  int squared = modulator == LAPLACIAN() || modulator == DIFFUSION()
                || (modulator == POWER() && tau == 2);
  if (modulator == POWER() && tau == 0) {
    reject("tau is 0; use a number above 0 and up to 2");
  }
  if (modulator != POWER() && orders > 1) {
    reject("orders is ", orders, ", and modulator is ", modulator, "; use orders = 1");
  }
  if (modulator != HIERARCHICAL() && H > 0) {
    reject("H is ", H, ", and modulator is ", modulator, "; use H = 0");
  }
  if (combine != MODULATED() && !squared) {
    reject("combine is ", combine, ", and modulator is ", modulator,
           "; use modulator = 1 or 4, or 2 with tau = 2");
  }
  if (combine != MODULATED() && base == RATIONAL_QUADRATIC()) {
    reject("combine is ", combine, ", and base is 2; use base = 1 or 3");
  }
  for (g in 2 : size(graph_of)) {
    if (graph_of[g] < graph_of[g - 1]) {
      reject("graph_of is not ascending; order lambda and graph_of by graph");
    }
  }
}

/**
 * Products of eigenvectors at the two vertices v, v' of each pair, summed over equal eigenvalues:
 *
 *   W_g = sum_{i in g} u_i[v] u_i[v'].
 *
 * @param U_A eigenvectors at the vertices of the first set, graphs side by side; N x (total number
 *   of vertices)
 * @param U_B the same for the second set; M x (total number of vertices)
 * @param group_of distinct eigenvalue of each eigenvector, 1..G
 * @param G number of distinct eigenvalues over all graphs
 * @param pairs indices into U_A and U_B; 2 x n_pairs
 * @return n_pairs x G
 */
matrix vertex_weights(data matrix U_A, data matrix U_B, data array[] int group_of, data int G,
                      data array[,] int pairs) {
  matrix[size(pairs[1]), G] W = rep_matrix(0, size(pairs[1]), G);
  for (i in 1 : size(group_of)) {
    W[ : , group_of[i]] += U_A[pairs[1], i] .* U_B[pairs[2], i];
  }
  return W;
}

/**
 * Vertex weights of a pair of equal points, averaged over the vertices of each graph: the share of
 * each distinct eigenvalue in the spectrum of its graph. With n_g eigenvectors of eigenvalue g,
 *
 *   W_g = n_g / sum_{h in p} n_h     for g in graph p.
 *
 * @param graph_of graph of each distinct eigenvalue; G
 * @param group_of distinct eigenvalue of each eigenvector
 * @return 1 x G
 */
matrix mean_vertex_weights(data array[] int graph_of, data array[] int group_of) {
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
 * Parameter-free parts of the distances between continuous inputs c and c~. They are those of
 * hierarchical_features for HIERARCHICAL, else
 *
 *   (c_d - c~_d)^2,   c_d^2,   c~_d^2.
 *
 * @param A, B continuous inputs; N x D, M x D
 * @param active_A, active_B 1 where active, else 0; N x D, M x D
 * @param modulator see above
 * @param pairs indices into A and B; 2 x n_pairs
 * @return three matrices, n_pairs x D
 */
array[] matrix continuous_features(data matrix A, data matrix active_A, data matrix B,
                                   data matrix active_B, data int modulator,
                                   data array[,] int pairs) {
  if (modulator == HIERARCHICAL()) {
    return hierarchical_features(A, active_A, B, active_B, rep_array(0, cols(A)), pairs);
  }
  return {squared_differences(A, B, pairs), square(A)[pairs[1]], square(B)[pairs[2]]};
}

/**
 * Parameter-free parts of the covariances of pairs: features F of continuous_features and weights W
 * of vertex_weights,
 *
 *   pairs = (F, W),   W_g = sum_{i in g} u_i[v] u_i[v'].
 *
 * @param A first set: continuous inputs (N x D), activity (N x D), eigenvectors (N x number of
 *   vertices)
 * @param B the same for the second set
 * @param indices indices into A and B; 2 x n_pairs
 * @param modulator see above
 * @param group_of, G see vertex_weights
 * @return pairs, see above
 */
tuple(array[] matrix, matrix) fm_pairs(data tuple(matrix, matrix, matrix) A,
                                       data tuple(matrix, matrix, matrix) B,
                                       data array[,] int indices, data int modulator,
                                       data array[] int group_of, data int G) {
  return (continuous_features(A.1, A.2, B.1, B.2, modulator, indices),
          vertex_weights(A.3, B.3, group_of, G, indices));
}

/**
 * 1 - k_NN, with the arc-sine kernel of a neural network on inputs augmented by 1 (Rasmussen &
 * Williams 2006, eq. 4.29), S = diag(bias^2, lengthscale^-2):
 *
 *   k_NN = 2/pi asin(2 c'S c~ / sqrt((1 + 2 c'S c)(1 + 2 c~'S c~))).
 *
 * asin has no derivative at 1. The same angle is the arctangent of 2 c'S c~ over the root of
 *
 *   (1 + 2 c'S c)(1 + 2 c~'S c~) - (2 c'S c~)^2 >= 1.
 *
 * @param features squared differences, squares of both sides; three n_pairs x D
 * @param lengthscale length-scales; D
 * @param bias standard deviation of the bias weight
 * @return n_pairs
 */
vector neural_distance(data array[] matrix features, vector lengthscale, real bias) {
  int n_pairs = rows(features[1]);
  vector[size(lengthscale)] weight = inv_square(lengthscale);
  vector[n_pairs] a = square(bias) + features[2] * weight;
  vector[n_pairs] b = square(bias) + features[3] * weight;
  vector[n_pairs] c = 0.5 * (a + b - features[1] * weight);
  vector[n_pairs] rest = 1 + 2 * (a + b) + 4 * (a .* b - square(c));
  return 1 - 2 / pi() * atan2(2 * c, sqrt(fmax(rest, 1)));
}

/**
 * Distance t that modulates:
 *
 *   r^2 = sum_d ((c_d - c~_d) / lengthscale_d)^2     Laplacian and diffusion,
 *   r^tau                                            power,
 *   1 - k_NN                                         neural,
 *   u - k_H                                          hierarchical.
 *
 * Here 1 - k_NN is neural_distance, k_H is the kernel hierarchical and u its upper bound.
 *
 * r^tau has no derivative at 0 for tau < 2. Coinciding points are masked, so their derivative is a
 * large finite number times 0.
 *
 * @param features from continuous_features; three n_pairs x D
 * @param distance see above
 * @param structure structure of the distance, see above
 * @return n_pairs
 */
vector modulating_distance(data array[] matrix features,
                           tuple(vector, vector, vector, vector, vector) distance,
                           data tuple(int, real, matrix, int, int, int) structure) {
  int modulator = structure.1;
  int add = structure.6;
  int n_pairs = rows(features[1]);
  int D = size(distance.1);
  if (modulator == NEURAL()) {
    return neural_distance(features, distance.1, distance.2[1]);
  }
  if (modulator == HIERARCHICAL()) {
    return (add ? D : 1)
           - hierarchical(features, (distance.3, distance.4, distance.1, distance.5),
                          (rep_array(0, D), structure.3, structure.4, structure.5, add));
  }
  if (modulator == POWER() && structure.2 < 2) {
    vector[n_pairs] apart;
    for (k in 1 : n_pairs) {
      apart[k] = sum(features[1][k]) > 0;
    }
    return apart .* pow(features[1] * inv_square(distance.1) + 1e-300, 0.5 * structure.2);
  }
  return features[1] * inv_square(distance.1);
}

/**
 * Correlations of pairs on one graph:
 *
 *   k_p(t) = sum_g W_g f(lambda_g, t),
 *   f(lambda, t) = sum_n weights_n (1 + beta lambda + t)^-n,
 *   f(lambda, t) = exp(-(1 + t) beta lambda)     for diffusion.
 *
 * @param W vertex weights of the eigenvalues of the graph; n_pairs x G_p
 * @param lambda distinct eigenvalues of the graph; G_p
 * @param t modulating distances times alpha; n_pairs
 * @param beta strength of the frequency penalty
 * @param weights of the orders n = 1..N; N
 * @param modulator see above
 * @return n_pairs
 */
vector graph_correlation(data matrix W, data vector lambda, vector t, real beta, vector weights,
                         data int modulator) {
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
 * Correlations of pairs on all graphs and continuous parameters, with k_p of graph_correlation and
 * the correlation s of the continuous parameters:
 *
 *   prod_p k_p(alpha_p t)     frequency modulation (eq. 5),
 *   s prod_p k_p(0)           product,
 *   s + prod_p k_p(0)         sum.
 *
 * @param W vertex weights, graphs side by side; n_pairs x G
 * @param t from modulating_distance; n_pairs. For PRODUCT and SUM it does not modulate.
 * @param smooth s, for PRODUCT and SUM; n_pairs
 * @param graphs see above
 * @param structure structure of the graphs, see above
 * @return n_pairs
 */
vector frequency_modulated(data matrix W, vector t, vector smooth,
                           tuple(vector, vector, vector) graphs,
                           data tuple(int, int, vector, array[] int) structure) {
  int modulator = structure.1;
  int combine = structure.2;
  int G = size(structure.4);
  int n_pairs = rows(W);
  vector[n_pairs] k = rep_vector(1, n_pairs);
  int start = 1;
  for (p in 1 : size(graphs.2)) {
    int G_p = 0;
    for (g in 1 : G) {
      G_p += structure.4[g] == p;
    }
    {
      array[G_p] int of_graph = linspaced_int_array(G_p, start, start + G_p - 1);
      vector[n_pairs] t_p = combine == MODULATED() ? graphs.1[p] * t : rep_vector(0, n_pairs);
      k = k
          .* graph_correlation(W[ : , of_graph], structure.3[of_graph], t_p, graphs.2[p], graphs.3,
                               modulator);
    }
    start += G_p;
  }
  if (combine == PRODUCT()) {
    return k .* smooth;
  }
  if (combine == SUM()) {
    return k + smooth;
  }
  return k;
}

/**
 * Covariances of pairs, with t of modulating_distance and f of graph_correlation:
 *
 *   sigma_f^2 prod_p sum_g W_pg f(lambda_pg, alpha_p t)   (eq. 5).
 *
 * For PRODUCT and SUM, see frequency_modulated, the correlation of the continuous parameters is
 * base_kernel of r^2, with the base of structure.1.
 *
 * @param pairs, hyper, structure see above
 * @return n_pairs
 */
vector fm_cov(data tuple(array[] matrix, matrix) pairs,
              tuple(real, tuple(vector, vector, vector, vector, vector),
                    tuple(vector, vector, vector)) hyper,
              data tuple(tuple(int, real, matrix, int, int, int),
                         tuple(int, int, vector, array[] int)) structure) {
  vector[rows(pairs.2)] t = modulating_distance(pairs.1, hyper.2, structure.1);
  vector[rows(pairs.2)] smooth = structure.2.2 == MODULATED() ? t
                                 : base_kernel(t, structure.1.4, structure.1.5, hyper.2.5);
  return square(hyper.1) * frequency_modulated(pairs.2, t, smooth, hyper.3, structure.2);
}

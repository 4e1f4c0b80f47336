/**
 * Pairs of points and their parameter-free differences.
 *
 * A list of pairs is an array of two rows of indices: pair k joins point pairs[1, k] of the first
 * set with point pairs[2, k] of the second.
 */

/**
 * Pairs of the strict lower triangle of a symmetric matrix, packed column by column: (2,1), (3,1),
 * ..., (N,1), (3,2), ..., (N,N-1). Pair (i, j), i > j, is at position
 *
 *   k = (j - 1) (2 N - j) / 2 + i - j.
 *
 * @param N number of points
 * @return indices; 2 x N (N - 1) / 2
 */
array[,] int lower_triangle(int N) {
  array[2, (N * (N - 1)) %/% 2] int pairs;
  int pos = 1;
  for (j in 1 : N) {
    for (i in (j + 1) : N) {
      pairs[1, pos] = i;
      pairs[2, pos] = j;
      pos += 1;
    }
  }
  return pairs;
}

/**
 * All pairs of N points with M points, in the column-major order of an N x M matrix. Pair (i, j) is
 * at position
 *
 *   k = (j - 1) N + i.
 *
 * @param N number of points in the first set
 * @param M number of points in the second
 * @return indices; 2 x N M
 */
array[,] int rectangle(int N, int M) {
  array[2, N * M] int pairs;
  int pos = 1;
  for (j in 1 : M) {
    for (i in 1 : N) {
      pairs[1, pos] = i;
      pairs[2, pos] = j;
      pos += 1;
    }
  }
  return pairs;
}

/**
 * Pairs of each point with itself:
 *
 *   (1, 1), (2, 2), ..., (N, N).
 *
 * @param N number of points
 * @return indices; 2 x N
 */
array[,] int self_pairs(int N) {
  array[2, N] int pairs;
  for (i in 1 : N) {
    pairs[1, i] = i;
    pairs[2, i] = i;
  }
  return pairs;
}

/**
 * Pairs of the strict lower triangle, then of the diagonal. Pair (i, j) is at position
 *
 *   k = (j - 1) (2 N - j) / 2 + i - j     for i > j,
 *   k = N (N - 1) / 2 + i                 for i = j.
 *
 * @param N number of points
 * @return indices; 2 x N (N + 1) / 2
 */
array[,] int triangle_and_diagonal(int N) {
  array[2, (N * (N - 1)) %/% 2] int triangle = lower_triangle(N);
  array[2, N] int own = self_pairs(N);
  return {append_array(triangle[1], own[1]), append_array(triangle[2], own[2])};
}

/**
 * Squared differences of the inputs of pairs. Pair (i, j) has the row
 *
 *   (a_id - b_jd)^2,   d = 1, ..., D.
 *
 * @param A points, one per row; N x D
 * @param B points, one per row; M x D
 * @param pairs indices into A and B; 2 x n_pairs
 * @return n_pairs x D
 */
matrix squared_differences(data matrix A, data matrix B, data array[,] int pairs) {
  return square(A[pairs[1]] - B[pairs[2]]);
}

/**
 * Symmetric matrix from its packed strict lower triangle and its diagonal:
 *
 *   K_ij = K_ji = packed_k,   k = (j - 1) (2 N - j) / 2 + i - j      for i > j,
 *   K_jj = diagonal_j.
 *
 * @param packed strict lower triangle, in the order of lower_triangle; N (N - 1) / 2
 * @param diagonal diagonal; N
 * @return N x N
 */
matrix symmetric_matrix(vector packed, vector diagonal) {
  int N = size(diagonal);
  matrix[N, N] K;
  int pos = 1;
  for (j in 1 : N) {
    K[j, j] = diagonal[j];
    for (i in (j + 1) : N) {
      K[i, j] = packed[pos];
      K[j, i] = packed[pos];
      pos += 1;
    }
  }
  return K;
}

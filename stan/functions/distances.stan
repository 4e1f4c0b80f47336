/**
 * Squared coordinate differences of all pairs of rows, the lower triangle
 * packed column by column: (2,1), (3,1), ..., (N,1), (3,2), ..., (N,N-1).
 * They do not depend on parameters, so they are computed once.
 *
 * @param X points, one a row; N x D
 * @return (x_id - x_jd)^2; N (N - 1) / 2 x D
 */
matrix squared_differences(data matrix X) {
  int N = rows(X);
  int D = cols(X);
  matrix[(N * (N - 1)) %/% 2, D] sq;
  int pos = 1;
  for (j in 1 : N) {
    for (i in (j + 1) : N) {
      sq[pos] = square(X[i] - X[j]);
      pos += 1;
    }
  }
  return sq;
}

/**
 * Squared coordinate differences of every row of A with every row of B, in
 * column-major order of the N x M cross-covariance they belong to.
 *
 * @param A points, one a row; N x D
 * @param B points, one a row; M x D
 * @return (a_id - b_jd)^2; N M x D
 */
matrix squared_differences(data matrix A, data matrix B) {
  int N = rows(A);
  int M = rows(B);
  matrix[N * M, cols(A)] sq;
  int pos = 1;
  for (j in 1 : M) {
    for (i in 1 : N) {
      sq[pos] = square(A[i] - B[j]);
      pos += 1;
    }
  }
  return sq;
}

/**
 * Symmetric matrix from its packed strict lower triangle and its diagonal.
 *
 * @param packed strict lower triangle, packed as squared_differences does;
 *   N (N - 1) / 2
 * @param diagonal the N diagonal entries
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

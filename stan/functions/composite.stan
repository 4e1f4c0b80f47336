/**
 * Sums and products of kernels, given as data: no expression needs a program of its own. Every leaf
 * has mean variance 1 on the unit cube, and a sum is a convex combination.
 *
 * Tuple arguments:
 *
 *   hyper      sigma_f, signal standard deviation
 *              lengthscale, length-scales leaf by leaf
 *              period, rq_alpha, centre, feature_lengthscale, of the leaves that have them
 *              left, right, weights of the two operands of each sum, see sum_weights
 *   structure  leaf (L x 8), for each leaf its kind; number of columns; first length-scale; period;
 *              rq_alpha; first centre; feature_lengthscale; column of given
 *              column, column of the inputs for each length-scale
 *              steps, the expression in postfix order: l > 0 pushes leaf l, 0 multiplies the two
 *              uppermost values, -j replaces them by the sum with the weights left[j], right[j]
 *              depth, largest number of values on the stack
 *
 * The next functions return the kinds of leaves. MATERN_0 + p is the Matern kernel of order p <= 2.
 */
int SE_LEAF() {
  return 1;
}

int RQ_LEAF() {
  return 2;
}

int PERIODIC_LEAF() {
  return 3;
}

int LINEAR_LEAF() {
  return 4;
}

int MATERN_0_LEAF() {
  return 5;
}

int CONSTANT_LEAF() {
  return 8;
}

int GIVEN_LEAF() {
  return 9;
}

int GIVEN_DISTANCE_LEAF() {
  return 10;
}

/**
 * Reject a leaf without an entry that its kind needs. Its first entry i of C among n has
 *
 *   1 <= i <= n - C + 1.
 *
 * @param l number of the leaf
 * @param leaf see above
 * @param n_lengthscale, n_centre numbers of entries
 */
void check_leaf(data int l, data array[] int leaf, data int n_lengthscale, data int n_centre) {
  int kind = leaf[1];
  int C = leaf[2];
  if (C && leaf[3] + C - 1 > n_lengthscale) {
    reject("first_lengthscale of leaf ", l, " is ", leaf[3], "; use at most ",
           n_lengthscale - C + 1);
  }
  if (kind == PERIODIC_LEAF() && !leaf[4]) {
    reject("period_of of leaf ", l, " is 0; a periodic leaf needs an entry of period");
  }
  if (kind == RQ_LEAF() && !leaf[5]) {
    reject("rq_alpha_of of leaf ", l, " is 0; a rational quadratic leaf needs an entry of rq_alpha");
  }
  if (kind == LINEAR_LEAF() && C && !leaf[6]) {
    reject("first_centre of leaf ", l, " is 0; a linear leaf needs an entry of centre");
  }
  if (leaf[6] && leaf[6] + C - 1 > n_centre) {
    reject("first_centre of leaf ", l, " is ", leaf[6], "; use at most ", n_centre - C + 1);
  }
  if (kind == GIVEN_DISTANCE_LEAF() && !leaf[7]) {
    reject("feature_of of leaf ", l,
           " is 0; a given distance needs an entry of feature_lengthscale");
  }
  if (kind >= GIVEN_LEAF() && !leaf[8]) {
    reject("given_of of leaf ", l, " is 0; a given leaf needs a column of given");
  }
}

/**
 * Reject steps that are not an expression in postfix order, whose stack has a number of values
 *
 *   1 <= top <= depth     after each step,
 *   top = 1               after the last one.
 *
 * @param steps, depth see above
 * @param n_sums number of sums with weights
 */
void check_steps(data array[] int steps, data int depth, data int n_sums) {
  int top = 0;
  for (step in steps) {
    top += step > 0 ? 1 : -1;
    if (top < 1) {
      reject("a sum or product in steps has fewer than two values before it; use postfix order");
    }
    if (top > depth) {
      reject("depth is ", depth, ", and steps has ", top,
             " values on the stack; use a larger depth");
    }
    if (-step > n_sums) {
      reject("steps has ", step, ", and only ", n_sums,
             " sums have weights; use -1 for the first sum");
    }
  }
  if (top != 1) {
    reject("steps leaves ", top, " values on the stack instead of one; use postfix order");
  }
}

/**
 * Weights of the operands of the sums, in postfix order. Each sum has a split, or the sums add up
 * all values with given shares, one after another:
 *
 *   left_j = split_j,                         right_j = 1 - split_j        with splits,
 *   left_1 = share_1, left_j = 1 for j > 1,   right_j = share_{j + 1}      with shares.
 *
 * @param split weights of the left operands
 * @param share weights of the values; none, or 2 and more, and then no split
 * @return (left, right)
 */
tuple(vector, vector) sum_weights(vector split, vector share) {
  int values = size(share);
  int n = max(values, 1) - 1;
  vector[size(split) + n] left = append_row(split, rep_vector(1, n));
  vector[size(split) + n] right = append_row(1 - split, rep_vector(1, n));
  for (i in 1 : n) {
    right[i] = share[i + 1];
  }
  if (n) {
    left[1] = share[1];
  }
  return (left, right);
}

/**
 * Linear kernel, with mean variance 1 on the unit cube:
 *
 *   (1 + sum_c (a_c - centre_c) (b_c - centre_c) / l_c^2)
 *     / (1 + sum_c ((1/2 - centre_c)^2 + 1/12) / l_c^2).
 *
 * @param a, b the two points of each pair; n_pairs x C
 * @param lengthscale, centre C
 * @return n_pairs
 */
vector linear_leaf(data matrix a, data matrix b, vector lengthscale, vector centre) {
  vector[size(centre)] w = inv_square(lengthscale);
  vector[rows(a)] product = (a .* b) * w - (a + b) * (w .* centre);
  return (1 + dot_product(w, square(centre)) + product)
         / (1 + dot_product(w, square(0.5 - centre) + 1.0 / 12));
}

/**
 * Correlations of one leaf: linear_leaf, or, with k from base_kernel and a column g of given,
 *
 *   k(sum_c (a_c - b_c)^2 / l_c^2)                           stationary,
 *   exp(-2 sum_c sin(pi (a_c - b_c) / period)^2 / l_c^2)     periodic,
 *   1                                                        constant,
 *   g                                                        given correlation,
 *   exp(-g / (2 l^2))                                        given squared distance.
 *
 * Here l is feature_lengthscale for a given squared distance, and lengthscale for the other leaves.
 *
 * @param A, B points; N x D, M x D
 * @param pairs indices into A and B; 2 x n_pairs
 * @param given correlations, or squared distances, that were computed elsewhere, one column each
 * @param leaf, column, hyper see above
 * @return n_pairs
 */
vector composite_leaf(data matrix A, data matrix B, data array[,] int pairs, data matrix given,
                      data array[] int leaf, data array[] int column,
                      tuple(real, vector, vector, vector, vector, vector, vector, vector) hyper) {
  int kind = leaf[1];
  int C = leaf[2];
  if (kind == CONSTANT_LEAF()) {
    return rep_vector(1, size(pairs[1]));
  }
  if (kind == GIVEN_LEAF()) {
    return given[ : , leaf[8]];
  }
  if (kind == GIVEN_DISTANCE_LEAF()) {
    return exp(-0.5 * inv_square(hyper.6[leaf[7]]) * given[ : , leaf[8]]);
  }
  array[C] int at = segment(column, leaf[3], C);
  vector[C] lengthscale = segment(hyper.2, leaf[3], C);
  if (kind == LINEAR_LEAF()) {
    return linear_leaf(A[pairs[1], at], B[pairs[2], at], lengthscale, segment(hyper.5, leaf[6], C));
  }
  matrix[size(pairs[1]), C] difference = A[pairs[1], at] - B[pairs[2], at];
  if (kind == PERIODIC_LEAF()) {
    return exp(-2 * (square(sin(pi() / hyper.3[leaf[4]] * difference)) * inv_square(lengthscale)));
  }
  vector[size(pairs[1])] h = square(difference) * inv_square(lengthscale);
  if (kind == SE_LEAF()) {
    return base_kernel(h, SQUARED_EXPONENTIAL(), 0, rep_vector(1, 0));
  }
  if (kind == RQ_LEAF()) {
    return base_kernel(h, RATIONAL_QUADRATIC(), 0, [hyper.4[leaf[5]]]');
  }
  return base_kernel(h, MATERN(), kind - MATERN_0_LEAF(), rep_vector(1, 0));
}

/**
 * Covariances of pairs of points, with the value e of the expression:
 *
 *   sigma_f^2 e,   e = e_1 e_2   or   e = left_j e_1 + right_j e_2
 *
 * The second formula is of a product, the third of sum j; a leaf has the value composite_leaf.
 *
 * @param A, B, pairs, given see composite_leaf
 * @param hyper, structure see above
 * @return n_pairs
 */
vector composite_cov(data matrix A, data matrix B, data array[,] int pairs, data matrix given,
                     tuple(real, vector, vector, vector, vector, vector, vector, vector) hyper,
                     data tuple(array[,] int, array[] int, array[] int, int) structure) {
  array[structure.4] vector[size(pairs[1])] stack;
  int top = 0;
  for (step in structure.3) {
    if (step > 0) {
      top += 1;
      stack[top] = composite_leaf(A, B, pairs, given, structure.1[step], structure.2, hyper);
    } else {
      top -= 1;
      if (step == 0) {
        stack[top] = stack[top] .* stack[top + 1];
      } else {
        stack[top] = hyper.7[-step] * stack[top] + hyper.8[-step] * stack[top + 1];
      }
    }
  }
  return square(hyper.1) * stack[1];
}

// Log density with the kernel of functions/composite.stan, and its derivatives.
#ifndef SLAYR_COMPOSITE_HPP
#define SLAYR_COMPOSITE_HPP

#include "base_kernels.hpp"

namespace slayr {

// Codes of functions/composite.stan. Matern0 + p is the Matern kernel of order p.
enum class Leaf { SE = 1, RQ, Periodic, Linear, Matern0, Matern1, Matern2, Constant, Given, GivenDistance };

// Call f(j, start, count) for each column j of the strict lower triangle: the pairs (j + 1 .. N - 1, j) are those from
// `start` on.
template <typename F>
void for_columns(Index N, F&& f) {
  for (Index j = 0, start = 0; j < N; start += N - 1 - j, ++j) {
    f(j, start, N - 1 - j);
  }
}

// One leaf on the pairs of triangle_and_diagonal, and the sums of its derivatives.
class LeafValues {
 public:
  ArrayXd value;
  VectorXd by_lengthscale, by_centre;
  double by_period = 0, by_rq_alpha = 0, by_feature_lengthscale = 0;

  // x: columns of the leaf.
  LeafValues(Leaf kind, const MatrixXd& x, const VectorXd& lengthscale, double period, double rq_alpha,
             const VectorXd& centre, double feature_lengthscale, const ArrayXd& given)
      : kind_(kind), x_(x), lengthscale_(lengthscale), weight_(lengthscale.array().square().inverse().matrix()),
        period_(period), rq_alpha_(rq_alpha), centre_(centre), feature_lengthscale_(feature_lengthscale),
        given_(given), n_(x.rows()) {
    if (kind == Leaf::Given) {
      value = given;
    } else if (kind == Leaf::GivenDistance) {
      value = (-0.5 / (feature_lengthscale * feature_lengthscale) * given).exp();
    } else if (kind == Leaf::Constant) {
      value = ArrayXd::Ones(n_ * (n_ + 1) / 2);
    } else if (kind == Leaf::Linear) {
      linear();
    } else if (kind == Leaf::Periodic) {
      periodic();
    } else {
      stationary();
    }
  }

  // adjoint: derivatives with respect to the values.
  void backward(const ArrayXd& adjoint) {
    by_lengthscale = VectorXd::Zero(lengthscale_.size());
    by_centre = VectorXd::Zero(centre_.size());
    if (kind_ == Leaf::GivenDistance) {
      by_feature_lengthscale = (adjoint * value * given_).sum() / std::pow(feature_lengthscale_, 3);
    } else if (kind_ == Leaf::Linear) {
      linear_backward(adjoint);
    } else if (kind_ == Leaf::Periodic) {
      periodic_backward(adjoint);
    } else if (kind_ != Leaf::Given && kind_ != Leaf::Constant) {
      stationary_backward(adjoint);
    }
  }

 private:
  Leaf kind_;
  const MatrixXd& x_;
  VectorXd lengthscale_, weight_;
  double period_, rq_alpha_;
  VectorXd centre_;
  double feature_lengthscale_;
  const ArrayXd& given_;
  Index n_;
  ArrayXd by_distance_, by_alpha_;  // of stationary leaves
  ArrayXXd sine_, cosine_;          // of the phases of the points
  ArrayXXd shifted_;                // inputs minus centre
  double norm_ = 1;                 // denominator of the linear leaf

  ArrayXd zero_pairs() const { return ArrayXd::Zero(n_ * (n_ + 1) / 2); }

  void stationary() {
    ArrayXd h = zero_pairs();
    for (Index c = 0; c < x_.cols(); ++c) {
      const auto x = x_.col(c).array();
      for_columns(n_, [&](Index j, Index start, Index count) {
        h.segment(start, count) += weight_(c) * (x.tail(count) - x(j)).square();
      });
    }
    const Base base = kind_ == Leaf::SE   ? Base::SquaredExponential
                      : kind_ == Leaf::RQ ? Base::RationalQuadratic
                                          : Base::Matern;
    const int order = static_cast<int>(kind_) - static_cast<int>(Leaf::Matern0);
    BaseKernel kernel(h, base, order, VectorXd::Constant(1, rq_alpha_));
    value = std::move(kernel.value);
    by_distance_ = std::move(kernel.by_distance);
    by_alpha_ = std::move(kernel.by_rq_alpha);
  }

  void stationary_backward(const ArrayXd& adjoint) {
    const ArrayXd slope = adjoint * by_distance_;
    for (Index c = 0; c < x_.cols(); ++c) {
      const auto x = x_.col(c).array();
      double sum = 0;
      for_columns(n_, [&](Index j, Index start, Index count) {
        sum += (slope.segment(start, count) * (x.tail(count) - x(j)).square()).sum();
      });
      by_lengthscale(c) = -2 * sum / std::pow(lengthscale_(c), 3);
    }
    if (kind_ == Leaf::RQ) {
      by_rq_alpha = (adjoint * by_alpha_).sum();
    }
  }

  // sin(a - b) = sin(a) cos(b) - cos(a) sin(b): N sines instead of N (N - 1) / 2.
  void periodic() {
    const ArrayXXd phase = stan::math::pi() / period_ * x_.array();
    sine_ = phase.sin();
    cosine_ = phase.cos();
    ArrayXd sum = zero_pairs();
    for (Index c = 0; c < x_.cols(); ++c) {
      const auto s = sine_.col(c), k = cosine_.col(c);
      for_columns(n_, [&](Index j, Index start, Index count) {
        sum.segment(start, count) += weight_(c) * (s.tail(count) * k(j) - k.tail(count) * s(j)).square();
      });
    }
    value = (-2 * sum).exp();
  }

  void periodic_backward(const ArrayXd& adjoint) {
    const ArrayXd scaled = adjoint * value;
    double by_phase = 0;
    for (Index c = 0; c < x_.cols(); ++c) {
      const auto s = sine_.col(c), k = cosine_.col(c);
      const auto x = x_.col(c).array();
      double squares = 0, slopes = 0;
      ArrayXd difference(n_);
      for_columns(n_, [&](Index j, Index start, Index count) {
        auto sine = difference.head(count);
        sine = s.tail(count) * k(j) - k.tail(count) * s(j);
        const auto g = scaled.segment(start, count);
        squares += (g * sine.square()).sum();
        slopes += (g * sine * (k.tail(count) * k(j) + s.tail(count) * s(j)) * (x.tail(count) - x(j))).sum();
      });
      by_lengthscale(c) = 4 * squares / std::pow(lengthscale_(c), 3);
      by_phase += 4 * slopes * weight_(c);
    }
    by_period = stan::math::pi() * by_phase / (period_ * period_);
  }

  void linear() {
    shifted_ = x_.array().rowwise() - centre_.array().transpose();
    norm_ = 1 + (weight_.array() * ((0.5 - centre_.array()).square() + 1.0 / 12)).sum();
    value = zero_pairs() + 1;
    for (Index c = 0; c < x_.cols(); ++c) {
      const auto u = shifted_.col(c);
      for_columns(n_, [&](Index j, Index start, Index count) {
        value.segment(start, count) += weight_(c) * u(j) * u.tail(count);
      });
      value.tail(n_) += weight_(c) * u.square();
    }
    value /= norm_;
  }

  void linear_backward(const ArrayXd& adjoint) {
    const double by_norm = -(adjoint * value).sum() / norm_;  // the value is Z / norm
    for (Index c = 0; c < x_.cols(); ++c) {
      const auto u = shifted_.col(c);
      double products = (adjoint.tail(n_) * u.square()).sum(), sums = 2 * (adjoint.tail(n_) * u).sum();
      for_columns(n_, [&](Index j, Index start, Index count) {
        const auto g = adjoint.segment(start, count);
        const double along = (g * u.tail(count)).sum();
        products += u(j) * along;
        sums += along + u(j) * g.sum();
      });
      const double middle = 0.5 - centre_(c);
      const double by_weight = products / norm_ + by_norm * (middle * middle + 1.0 / 12);
      by_lengthscale(c) = -2 * by_weight / std::pow(lengthscale_(c), 3);
      by_centre(c) = weight_(c) * (-sums / norm_ - 2 * by_norm * middle);
    }
  }
};

// An operation of the expression: a leaf, or the sum or product of two earlier operations.
struct Operation {
  int step;
  Index left = -1, right = -1;
  ArrayXd value, adjoint;
};

}  // namespace slayr

// points, hyper, structure: the tuples of the Stan function.
template <typename T, typename Observed, typename Points, typename Hyper, typename Structure>
T composite_log_marginal(const Observed& observed, const Eigen::Matrix<T, -1, 1>& warp, const T& mu, const T& sigma_n,
                         const Points& points, const Hyper& hyper, const Structure& structure, std::ostream*) {
  using namespace slayr;
  using stan::math::value_of;
  const MatrixXd& X = std::get<0>(points);
  const MatrixXd& given = std::get<2>(points);
  const auto& [sigma_f, lengthscale, period, rq_alpha, centre, feature_lengthscale, left, right] = hyper;
  const auto& [leaf, column, steps, depth] = structure;
  const VectorXd lengthscales = value_of(lengthscale), periods = value_of(period), alphas = value_of(rq_alpha),
                 centres = value_of(centre), features = value_of(feature_lengthscale), of_left = value_of(left),
                 of_right = value_of(right);
  const Index N = X.rows(), L = static_cast<Index>(leaf.size()), n_pairs = N * (N - 1) / 2;
  const auto entry = [](const VectorXd& values, int at) { return at ? values(at - 1) : 1.0; };

  std::vector<MatrixXd> inputs(L);
  std::vector<ArrayXd> given_values(L);
  std::vector<LeafValues> leaves;
  leaves.reserve(L);
  for (Index l = 0; l < L; ++l) {
    const int kind = leaf[l][0], columns = leaf[l][1], first = leaf[l][2], of_period = leaf[l][3],
              of_alpha = leaf[l][4], of_centre = leaf[l][5], of_feature = leaf[l][6], of_given = leaf[l][7];
    inputs[l].resize(N, columns);
    for (int c = 0; c < columns; ++c) {
      inputs[l].col(c) = X.col(column[first - 1 + c] - 1);
    }
    if (of_given) {
      given_values[l] = given.col(of_given - 1).array();
    }
    leaves.emplace_back(static_cast<Leaf>(kind), inputs[l], lengthscales.segment(columns ? first - 1 : 0, columns),
                        entry(periods, of_period), entry(alphas, of_alpha),
                        VectorXd(of_centre ? centres.segment(of_centre - 1, columns) : VectorXd()),
                        entry(features, of_feature), given_values[l]);
  }

  std::vector<Operation> operations(steps.size());
  std::vector<Index> stack;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Operation& operation = operations[i];
    operation.step = steps[i];
    if (operation.step > 0) {
      operation.value = leaves[operation.step - 1].value;
    } else {
      operation.right = stack.back();
      stack.pop_back();
      operation.left = stack.back();
      stack.pop_back();
      const ArrayXd &a = operations[operation.left].value, &b = operations[operation.right].value;
      if (operation.step == 0) {
        operation.value = a * b;
      } else {
        operation.value = of_left(-operation.step - 1) * a + of_right(-operation.step - 1) * b;
      }
    }
    stack.push_back(i);
  }
  const double variance = value_of(sigma_f) * value_of(sigma_f);
  const ArrayXd& correlation = operations.back().value;
  const ArrayXd k = variance * correlation;
  if constexpr (std::is_same_v<T, double>) {
    return log_density(observed, warp, mu, sigma_n, k.head(n_pairs), k.tail(N));
  }
  const Marginal density
      = marginal(observed, value_of(warp), value_of(mu), value_of(sigma_n), k.head(n_pairs), k.tail(N));

  ArrayXd adjoint(k.size());
  adjoint << density.by_pair, density.by_variance;
  const double by_sigma_f = 2 * value_of(sigma_f) * (adjoint * correlation).sum();
  operations.back().adjoint = variance * adjoint;
  VectorXd by_left = VectorXd::Zero(of_left.size()), by_right = by_left;
  VectorXd by_lengthscale = VectorXd::Zero(lengthscales.size()), by_period = VectorXd::Zero(periods.size()),
           by_alpha = VectorXd::Zero(alphas.size()), by_centre = VectorXd::Zero(centres.size()),
           by_feature = VectorXd::Zero(features.size());
  for (std::size_t i = operations.size(); i-- > 0;) {
    const Operation& operation = operations[i];
    if (operation.step <= 0) {
      Operation &a = operations[operation.left], &b = operations[operation.right];
      if (operation.step == 0) {
        a.adjoint = operation.adjoint * b.value;
        b.adjoint = operation.adjoint * a.value;
      } else {
        const Index j = -operation.step - 1;
        by_left(j) = (operation.adjoint * a.value).sum();
        by_right(j) = (operation.adjoint * b.value).sum();
        a.adjoint = of_left(j) * operation.adjoint;
        b.adjoint = of_right(j) * operation.adjoint;
      }
      continue;
    }
    const auto& of_leaf = leaf[operation.step - 1];
    LeafValues& values = leaves[operation.step - 1];
    values.backward(operation.adjoint);
    if (values.by_lengthscale.size()) {
      by_lengthscale.segment(of_leaf[2] - 1, of_leaf[1]) = values.by_lengthscale;
    }
    if (of_leaf[3]) {
      by_period(of_leaf[3] - 1) = values.by_period;
    }
    if (of_leaf[4]) {
      by_alpha(of_leaf[4] - 1) = values.by_rq_alpha;
    }
    if (of_leaf[5]) {
      by_centre.segment(of_leaf[5] - 1, of_leaf[1]) = values.by_centre;
    }
    if (of_leaf[6]) {
      by_feature(of_leaf[6] - 1) = values.by_feature_lengthscale;
    }
  }

  Node node;
  node.add(warp, density.by_warp);
  node.add(mu, density.by_mu);
  node.add(sigma_n, density.by_sigma_n);
  node.add(sigma_f, by_sigma_f);
  node.add(lengthscale, by_lengthscale);
  node.add(period, by_period);
  node.add(rq_alpha, by_alpha);
  node.add(centre, by_centre);
  node.add(feature_lengthscale, by_feature);
  node.add(left, by_left);
  node.add(right, by_right);
  return node.finish<T>(density.value);
}

#endif

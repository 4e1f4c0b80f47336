// The kernel of functions/composite.stan, and its derivatives.
#ifndef SLAYR_COMPOSITE_KERNEL_HPP
#define SLAYR_COMPOSITE_KERNEL_HPP

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

// Hyperparameters of the leaves and weights of the sums, or the derivatives by them.
struct CompositeHyper {
  VectorXd lengthscale, period, rq_alpha, centre, feature_lengthscale, left, right;
};

// The value of an expression on the pairs of triangle_and_diagonal, and its derivatives.
class CompositeKernel {
 public:
  CompositeHyper by;  // after backward

  // X: inputs; given, leaf, column, steps: see functions/composite.stan.
  CompositeKernel(const MatrixXd& X, const MatrixXd& given, const CompositeHyper& hyper,
                  const std::vector<std::vector<int>>& leaf, const std::vector<int>& column,
                  const std::vector<int>& steps)
      : leaf_(leaf), hyper_(hyper), inputs_(leaf.size()), given_(leaf.size()), operations_(steps.size()) {
    leaves_.reserve(leaf.size());
    for (std::size_t l = 0; l < leaf.size(); ++l) {
      add_leaf(l, X, given, column);
    }
    evaluate(steps);
  }
  CompositeKernel(const CompositeKernel&) = delete;  // leaves refer to inputs_ and given_

  const ArrayXd& value() const { return operations_.back().value; }

  // adjoint: derivatives with respect to the value.
  void backward(const ArrayXd& adjoint) {
    by.lengthscale = VectorXd::Zero(hyper_.lengthscale.size());
    by.period = VectorXd::Zero(hyper_.period.size());
    by.rq_alpha = VectorXd::Zero(hyper_.rq_alpha.size());
    by.centre = VectorXd::Zero(hyper_.centre.size());
    by.feature_lengthscale = VectorXd::Zero(hyper_.feature_lengthscale.size());
    by.left = VectorXd::Zero(hyper_.left.size());
    by.right = VectorXd::Zero(hyper_.right.size());
    operations_.back().adjoint = adjoint;
    for (std::size_t i = operations_.size(); i-- > 0;) {
      const Operation& operation = operations_[i];
      if (operation.step > 0) {
        leaf_backward(operation.step - 1, operation.adjoint);
        continue;
      }
      Operation &a = operations_[operation.left], &b = operations_[operation.right];
      if (operation.step == 0) {
        a.adjoint = operation.adjoint * b.value;
        b.adjoint = operation.adjoint * a.value;
      } else {
        const Index j = -operation.step - 1;
        by.left(j) += (operation.adjoint * a.value).sum();
        by.right(j) += (operation.adjoint * b.value).sum();
        a.adjoint = hyper_.left(j) * operation.adjoint;
        b.adjoint = hyper_.right(j) * operation.adjoint;
      }
    }
  }

 private:
  // A leaf, or the sum or product of two earlier operations.
  struct Operation {
    int step;
    Index left = -1, right = -1;
    ArrayXd value, adjoint;
  };

  const std::vector<std::vector<int>>& leaf_;
  CompositeHyper hyper_;
  std::vector<MatrixXd> inputs_;
  std::vector<ArrayXd> given_;
  std::vector<LeafValues> leaves_;
  std::vector<Operation> operations_;

  void add_leaf(std::size_t l, const MatrixXd& X, const MatrixXd& given, const std::vector<int>& column) {
    const int kind = leaf_[l][0], columns = leaf_[l][1], first = leaf_[l][2], of_period = leaf_[l][3],
              of_alpha = leaf_[l][4], of_centre = leaf_[l][5], of_feature = leaf_[l][6], of_given = leaf_[l][7];
    const auto entry = [](const VectorXd& values, int at) { return at ? values(at - 1) : 1.0; };
    inputs_[l].resize(X.rows(), columns);
    for (int c = 0; c < columns; ++c) {
      inputs_[l].col(c) = X.col(column[first - 1 + c] - 1);
    }
    if (of_given) {
      given_[l] = given.col(of_given - 1).array();
    }
    leaves_.emplace_back(static_cast<Leaf>(kind), inputs_[l],
                         hyper_.lengthscale.segment(columns ? first - 1 : 0, columns),
                         entry(hyper_.period, of_period), entry(hyper_.rq_alpha, of_alpha),
                         VectorXd(of_centre ? hyper_.centre.segment(of_centre - 1, columns) : VectorXd()),
                         entry(hyper_.feature_lengthscale, of_feature), given_[l]);
  }

  void evaluate(const std::vector<int>& steps) {
    std::vector<Index> stack;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Operation& operation = operations_[i];
      operation.step = steps[i];
      if (operation.step > 0) {
        operation.value = leaves_[operation.step - 1].value;
      } else {
        operation.right = stack.back();
        stack.pop_back();
        operation.left = stack.back();
        stack.pop_back();
        const ArrayXd &a = operations_[operation.left].value, &b = operations_[operation.right].value;
        if (operation.step == 0) {
          operation.value = a * b;
        } else {
          operation.value = hyper_.left(-operation.step - 1) * a + hyper_.right(-operation.step - 1) * b;
        }
      }
      stack.push_back(i);
    }
  }

  void leaf_backward(Index l, const ArrayXd& adjoint) {
    const std::vector<int>& leaf = leaf_[l];
    LeafValues& values = leaves_[l];
    values.backward(adjoint);
    if (values.by_lengthscale.size()) {
      by.lengthscale.segment(leaf[2] - 1, leaf[1]) += values.by_lengthscale;
    }
    if (leaf[3]) {
      by.period(leaf[3] - 1) += values.by_period;
    }
    if (leaf[4]) {
      by.rq_alpha(leaf[4] - 1) += values.by_rq_alpha;
    }
    if (leaf[5]) {
      by.centre.segment(leaf[5] - 1, leaf[1]) += values.by_centre;
    }
    if (leaf[6]) {
      by.feature_lengthscale(leaf[6] - 1) += values.by_feature_lengthscale;
    }
  }
};

}  // namespace slayr

#endif

// Log density of the observations of a Gaussian process, and its derivatives, in double precision.
//
// Stan's automatic differentiation records each operation on each pair of points. Here, one node of the expression
// graph holds the derivatives with respect to the hyperparameters, which follow from
//
//   d log N(t | mu, K) = 1/2 tr((a a' - K^-1) dK) - a'(dt - dmu),   a = K^-1 (t - mu)
//
// (Rasmussen & Williams 2006, eq. 5.9), t = T(y). The sums run over the pairs of the lower triangle only.
#ifndef SLAYR_GAUSSIAN_HPP
#define SLAYR_GAUSSIAN_HPP

#include <stan/math/rev.hpp>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <cmath>
#include <limits>
#include <vector>

namespace slayr {

#ifdef __GLIBC__
// Each gradient allocates the same arrays again. By default glibc returns large arrays to the system, which clears
// their pages: half of the run time for 200 points.
inline const bool keeps_memory = mallopt(M_MMAP_THRESHOLD, 1 << 28) && mallopt(M_TRIM_THRESHOLD, 1 << 29);
#endif

using Eigen::ArrayXd;
using Eigen::ArrayXXd;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Eigen::Index;

// Targets after the transformation of functions/warp.stan, the logarithm of its Jacobian, the derivatives of both with
// respect to the warp, which has 0 or 1 entries, and the variances of the noise, which do not depend on it.
struct Targets {
  VectorXd value;
  VectorXd by_warp;
  double log_jacobian = 0;
  double log_jacobian_by_warp = 0;
  ArrayXd noise;
  bool binary;

  // observed: the tuple (y, y_sd, noise_floor, binary) of blocks/transformed_data.stan.
  template <typename Observed>
  Targets(const Observed& observed, const VectorXd& warp, double sigma_n)
      : value(std::get<0>(observed)), binary(std::get<3>(observed)) {
    const VectorXd y_sd = std::get<1>(observed);
    const double floor = std::get<2>(observed);
    noise = sigma_n * sigma_n + floor * floor + y_sd.array().square();
    if (!warp.size()) {
      return;
    }
    by_warp.resize(value.size());
    const double a = warp(0);
    for (Index i = 0; i < value.size(); ++i) {
      const double v = value(i), t = (v < 0 ? -std::expm1(-a * v) : std::log1p(a * v)) / a;
      value(i) = t;
      by_warp(i) = ((v < 0 ? v * std::exp(-a * v) : v / (1 + a * v)) - t) / a;
      log_jacobian += v < 0 ? -a * v : -a * t;  // a t = log(1 + a v)
      log_jacobian_by_warp += v < 0 ? -v : -v / (1 + a * v);
    }
  }
};

// Log density, and its derivatives with respect to the covariance of the function, the warp, the mean and the noise.
struct Marginal {
  double value;
  ArrayXd by_pair;      // by K_ij and K_ji together, in the order of lower_triangle
  ArrayXd by_variance;  // by K_ii
  VectorXd by_warp;
  double by_mu;
  double by_sigma_n;
};

// Invert a lower triangular matrix in place, by halves: inv [A 0; B C] = [A^-1 0; -C^-1 B A^-1, C^-1].
inline void invert_lower(Eigen::Ref<MatrixXd, 0, Eigen::OuterStride<>> L) {
  const Index n = L.rows();
  if (n <= 32) {
    for (Index j = 0; j < n; ++j) {
      const double d = 1 / L(j, j);
      L(j, j) = d;
      for (Index i = j + 1; i < n; ++i) {
        double sum = 0;
        for (Index k = j; k < i; ++k) {
          sum += L(i, k) * L(k, j);
        }
        L(i, j) = -sum / L(i, i);
      }
    }
    return;
  }
  const Index h = n / 2;
  MatrixXd B = L.bottomLeftCorner(n - h, h);
  L.bottomRightCorner(n - h, n - h).triangularView<Eigen::Lower>().solveInPlace(B);
  invert_lower(L.topLeftCorner(h, h));
  invert_lower(L.bottomRightCorner(n - h, n - h));
  L.bottomLeftCorner(n - h, h).noalias() = -(B * L.topLeftCorner(h, h).triangularView<Eigen::Lower>());
}

// Lower triangle of the covariance of the function, with zeros above.
inline MatrixXd lower_covariance(const Eigen::Ref<const ArrayXd>& pair, const Eigen::Ref<const ArrayXd>& variance) {
  const Index n = variance.size();
  MatrixXd K(n, n);
  for (Index j = 0, start = 0; j < n; start += n - 1 - j, ++j) {
    K.col(j).head(j).setZero();  // products read it
    K(j, j) = variance(j);
    K.col(j).tail(n - 1 - j) = pair.segment(start, n - 1 - j).matrix();
  }
  return K;
}

// Replace the lower triangle of K by the Cholesky factor of K plus the noise; return whether it is positive definite.
inline bool factorise(MatrixXd& K, const ArrayXd& noise) {
  const Index n = K.rows();
  K.diagonal().array() += noise;
  Eigen::LLT<Eigen::Ref<MatrixXd>> factor(K);
  return n == 0 || (factor.info() == Eigen::Success && (K.diagonal().array() > 0).all());
}

}  // namespace slayr

#include "probit.hpp"

namespace slayr {

// The value alone; arguments as of marginal.
template <typename Observed>
double log_density(const Observed& observed, const VectorXd& warp, double mu, double sigma_n,
                   const Eigen::Ref<const ArrayXd>& pair, const Eigen::Ref<const ArrayXd>& variance) {
  const Targets targets(observed, warp, sigma_n);
  MatrixXd K = lower_covariance(pair, variance);
  if (targets.binary) {
    return Probit(targets.value, mu, K).log_marginal();
  }
  if (!factorise(K, targets.noise)) {
    return -std::numeric_limits<double>::infinity();
  }
  const VectorXd whitened
      = K.triangularView<Eigen::Lower>().solve((targets.value.array() - mu).matrix());
  return -0.5 * whitened.squaredNorm() - K.diagonal().array().log().sum()
         - 0.5 * K.rows() * std::log(2 * stan::math::pi()) + targets.log_jacobian;
}

// observed, warp: see Targets; pair: covariances of the function, in the order of lower_triangle; variance: its
// variances. If the matrix is not positive definite, the density is 0: the sampler rejects the step.
template <typename Observed>
Marginal marginal(const Observed& observed, const VectorXd& warp, double mu, double sigma_n,
                  const Eigen::Ref<const ArrayXd>& pair, const Eigen::Ref<const ArrayXd>& variance) {
  const Index n = variance.size();
  const Targets targets(observed, warp, sigma_n);
  MatrixXd K = lower_covariance(pair, variance);
  Marginal out;
  if (targets.binary) {
    Probit(targets.value, mu, K).differentiate(out);
    return out;
  }
  if (!factorise(K, targets.noise)) {
    return {-std::numeric_limits<double>::infinity(), ArrayXd::Zero(pair.size()), ArrayXd::Zero(n),
            VectorXd::Zero(warp.size()), 0, 0};
  }
  const double log_root_determinant = K.diagonal().array().log().sum();
  invert_lower(K);
  VectorXd whitened = K.triangularView<Eigen::Lower>() * (targets.value.array() - mu).matrix();
  VectorXd a = K.triangularView<Eigen::Lower>().transpose() * whitened;
  out.value = -0.5 * whitened.squaredNorm() - log_root_determinant - 0.5 * n * std::log(2 * stan::math::pi())
              + targets.log_jacobian;
  // Lower triangle of K^-1 = W'W by block rows, without the products of zeros in W.
  MatrixXd inverse(n, n);
  const Index width = 48;
  for (Index i = 0; i < n; i += width) {
    const Index rows = std::min(width, n - i);
    inverse.block(i, 0, rows, i + rows).noalias()
        = K.block(i, i, n - i, rows).triangularView<Eigen::Lower>().toDenseMatrix().transpose()
          * K.block(i, 0, n - i, i + rows);
  }
  out.by_pair.resize(pair.size());
  for (Index j = 0, start = 0; j < n; start += n - 1 - j, ++j) {
    const Index rest = n - 1 - j;
    out.by_pair.segment(start, rest) = a(j) * a.tail(rest).array() - inverse.col(j).tail(rest).array();
  }
  out.by_variance = 0.5 * (a.array().square() - inverse.diagonal().array());
  out.by_warp.resize(warp.size());
  if (warp.size()) {
    out.by_warp(0) = targets.log_jacobian_by_warp - a.dot(targets.by_warp);
  }
  out.by_mu = a.sum();
  out.by_sigma_n = 2 * sigma_n * out.by_variance.sum();
  return out;
}

// Operands of one node of the expression graph, and the derivatives with respect to them in the same order.
class Node {
 public:
  void add(const stan::math::var& operand, double derivative) {
    operands_.push_back(operand);
    derivatives_.push_back(derivative);
  }
  template <typename Derivatives>
  void add(const Eigen::Matrix<stan::math::var, -1, 1>& operands, const Derivatives& derivatives) {
    for (Index i = 0; i < operands.size(); ++i) {
      add(operands(i), derivatives(i));
    }
  }
  void add(double, double) {}
  template <typename Derivatives>
  void add(const VectorXd&, const Derivatives&) {}

  // Return the value as T; for double there are no derivatives to record.
  template <typename T>
  T finish(double value) const {
    if constexpr (std::is_same_v<T, double>) {
      return value;
    } else {
      return stan::math::precomputed_gradients(value, operands_, derivatives_);
    }
  }

 private:
  std::vector<stan::math::var> operands_;
  std::vector<double> derivatives_;
};

}  // namespace slayr

#endif

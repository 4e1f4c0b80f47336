// Log density of normal errors, and its derivatives, in double precision.
//
// Stan's automatic differentiation records each operation on each pair of points. Here, one node of the expression
// graph holds the derivatives with respect to the hyperparameters, which follow from
//
//   d log N(r | 0, K) = 1/2 tr((a a' - K^-1) dK) - a'dr,   a = K^-1 r
//
// (Rasmussen & Williams 2006, eq. 5.9). The sums run over the pairs of the lower triangle only.
#ifndef SLAYR_NORMAL_HPP
#define SLAYR_NORMAL_HPP

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

// The value alone; arguments as of normal_density.
inline double normal_value(const VectorXd& residual, const ArrayXd& noise, const Eigen::Ref<const ArrayXd>& pair,
                           const Eigen::Ref<const ArrayXd>& variance) {
  MatrixXd K = lower_covariance(pair, variance);
  if (!factorise(K, noise)) {
    return -std::numeric_limits<double>::infinity();
  }
  const VectorXd whitened = K.triangularView<Eigen::Lower>().solve(residual);
  return -0.5 * whitened.squaredNorm() - K.diagonal().array().log().sum()
         - 0.5 * K.rows() * std::log(2 * stan::math::pi());
}

// log N(residual | 0, K), and its derivatives with respect to the residual and the covariance.
struct NormalDensity {
  double value;
  ArrayXd by_pair;      // by K_ij and K_ji together, in the order of lower_triangle
  ArrayXd by_variance;  // by K_ii
  VectorXd by_residual;
};

// noise: variances added to the diagonal; pair: covariances of the function, in the order of lower_triangle; variance:
// its variances. If the matrix is not positive definite, the density is 0: the sampler rejects the step.
inline NormalDensity normal_density(const VectorXd& residual, const ArrayXd& noise,
                                    const Eigen::Ref<const ArrayXd>& pair, const Eigen::Ref<const ArrayXd>& variance) {
  const Index n = variance.size();
  MatrixXd K = lower_covariance(pair, variance);
  if (!factorise(K, noise)) {
    return {-std::numeric_limits<double>::infinity(), ArrayXd::Zero(pair.size()), ArrayXd::Zero(n), VectorXd::Zero(n)};
  }
  const double log_root_determinant = K.diagonal().array().log().sum();
  invert_lower(K);
  const VectorXd whitened = K.triangularView<Eigen::Lower>() * residual;
  const VectorXd a = K.triangularView<Eigen::Lower>().transpose() * whitened;
  NormalDensity out;
  out.value = -0.5 * whitened.squaredNorm() - log_root_determinant - 0.5 * n * std::log(2 * stan::math::pi());
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
  out.by_residual = -a;
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

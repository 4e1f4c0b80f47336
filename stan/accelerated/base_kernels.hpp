// Stationary kernels of one squared distance (functions/base_kernels.stan) and their derivatives.
#ifndef SLAYR_BASE_KERNELS_HPP
#define SLAYR_BASE_KERNELS_HPP

#include "normal.hpp"

namespace slayr {

// Codes of functions/base_kernels.stan.
enum class Base { SquaredExponential = 1, RationalQuadratic, Matern };

// Matern correlation at scaled distances d = sqrt(2 nu h), given e = exp(-d); see functions/matern.stan.
template <typename Values>
Values matern_from(const Values& d, const Values& e, int p) {
  Values k = e;
  for (int j = p - 1; j >= 0; --j) {
    k = e + (2.0 * (p - j) / ((2.0 * p - j) * (j + 1))) * d * k;
  }
  return k;
}

inline ArrayXd matern(const ArrayXd& d, int p) {
  const ArrayXd e = (-d).exp();
  return matern_from(d, e, p);
}

// Derivative of the Matern correlation with respect to d^2; 0 at d = 0 for p = 0, where it does not exist.
inline ArrayXd matern_slope(const ArrayXd& d, int p) {
  if (p > 0) {
    return -matern(d, p - 1) / (2 * (2.0 * p - 1));
  }
  return (d > 0).select(-(-d).exp() / (2 * (d > 0).select(d, 1.0)), 0.0);
}

struct BaseKernel {
  ArrayXd value, by_distance, by_rq_alpha;

  // h: squared distances over squared length-scale.
  BaseKernel(const ArrayXd& h, Base base, int p, const VectorXd& rq_alpha) {
    if (base == Base::SquaredExponential) {
      value = (-0.5 * h).exp();
      by_distance = -0.5 * value;
    } else if (base == Base::RationalQuadratic) {
      const double alpha = rq_alpha(0);
      const ArrayXd ratio = h / (2 * alpha), logarithm = ratio.log1p();
      value = (-alpha * logarithm).exp();
      by_distance = -0.5 * value / (1 + ratio);
      by_rq_alpha = value * (ratio / (1 + ratio) - logarithm);
    } else {
      const ArrayXd d = ((2 * p + 1) * h).sqrt();
      value = matern(d, p);
      by_distance = (2 * p + 1) * matern_slope(d, p);
    }
  }
};

}  // namespace slayr

#endif

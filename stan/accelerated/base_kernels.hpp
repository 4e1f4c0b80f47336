// Stationary kernels of one squared distance, functions/base_kernels.stan, and their derivatives.
#ifndef SLAYR_BASE_KERNELS_HPP
#define SLAYR_BASE_KERNELS_HPP

#include "gaussian.hpp"

namespace slayr {

// Matern correlation at scaled distances d = sqrt(2 nu h); see functions/matern.stan.
inline ArrayXd matern(const ArrayXd& d, int p) {
  const ArrayXd e = (-d).exp();
  ArrayXd k = e;
  for (int j = p - 1; j >= 0; --j) {
    k = e + (2.0 * (p - j) / ((2.0 * p - j) * (j + 1))) * d * k;
  }
  return k;
}

// Derivative of the same by d^2, 0 at the exponential kernel's kink.
inline ArrayXd matern_slope(const ArrayXd& d, int p) {
  if (p > 0) {
    return -matern(d, p - 1) / (2 * (2.0 * p - 1));
  }
  return (d > 0).select(-(-d).exp() / (2 * (d > 0).select(d, 1.0)), 0.0);
}

struct BaseKernel {
  ArrayXd value, by_distance, by_rq_alpha;

  // h: squared distances over squared length-scale.
  BaseKernel(const ArrayXd& h, int base, int p, const VectorXd& rq_alpha) {
    if (base == 1) {
      value = (-0.5 * h).exp();
      by_distance = -0.5 * value;
    } else if (base == 2) {
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

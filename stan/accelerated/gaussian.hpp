// Log density of the observations of a Gaussian process, after a transformation t = T(y), and its derivatives; see
// normal.hpp. For binary observations see probit.hpp.
#ifndef SLAYR_GAUSSIAN_HPP
#define SLAYR_GAUSSIAN_HPP

#include <utility>

#include "normal.hpp"

namespace slayr {

// Targets after the transformation of functions/warp.stan, the logarithm of its Jacobian, the derivatives of both with
// respect to the warp, and the variances of the noise, which do not depend on it. The argument `warp` has no entries, or
// the warp, or the warp and the pivot.
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
    if (warp.size() == 2) {
      above_pivot(a, warp(1));
      return;
    }
    for (Index i = 0; i < value.size(); ++i) {
      const double v = value(i), t = (v < 0 ? -std::expm1(-a * v) : std::log1p(a * v)) / a;
      value(i) = t;
      by_warp(i) = ((v < 0 ? v * std::exp(-a * v) : v / (1 + a * v)) - t) / a;
      log_jacobian += v < 0 ? -a * v : -a * t;  // a t = log(1 + a v)
      log_jacobian_by_warp += v < 0 ? -v : -v / (1 + a * v);
    }
  }

  // T(y) = S (g(a (y - b)) - log(1 - a b)), where g is log(1 + v) above 0 and the identity below.
  void above_pivot(double a, double b) {
    const double range = 4 / std::log1p(4 * a);
    const double log_range_by_warp = -range / (1 + 4 * a);
    const double shift = std::log1p(-a * b);
    const double shift_by_warp = -b / (1 - a * b);
    bool has_pivot = false;
    for (Index i = 0; i < value.size(); ++i) {
      const double distance = value(i) - b, v = a * distance, steepness = 1 + std::max(v, 0.0);
      const double t = range * ((v < 0 ? v : std::log1p(v)) - shift);
      value(i) = t;
      by_warp(i) = log_range_by_warp * t + range * (distance / steepness - shift_by_warp);
      if (distance == 0 && std::exchange(has_pivot, true)) {
        continue;  // as in log_jacobian_of_warp
      }
      log_jacobian += std::log(range * a / steepness);
      log_jacobian_by_warp += log_range_by_warp + 1 / a - (v < 0 ? 0 : distance / steepness);
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

}  // namespace slayr

#include "probit.hpp"

namespace slayr {

// The value alone; arguments as of marginal.
template <typename Observed>
double log_density(const Observed& observed, const VectorXd& warp, double mu, double sigma_n,
                   const Eigen::Ref<const ArrayXd>& pair, const Eigen::Ref<const ArrayXd>& variance) {
  const Targets targets(observed, warp, sigma_n);
  if (targets.binary) {
    return Probit(targets.value, mu, lower_covariance(pair, variance)).log_marginal();
  }
  return normal_value((targets.value.array() - mu).matrix(), targets.noise, pair, variance) + targets.log_jacobian;
}

// observed, warp: see Targets; pair, variance: see normal_density.
template <typename Observed>
Marginal marginal(const Observed& observed, const VectorXd& warp, double mu, double sigma_n,
                  const Eigen::Ref<const ArrayXd>& pair, const Eigen::Ref<const ArrayXd>& variance) {
  const Targets targets(observed, warp, sigma_n);
  Marginal out;
  if (targets.binary) {
    Probit(targets.value, mu, lower_covariance(pair, variance)).differentiate(out);
    return out;
  }
  NormalDensity normal = normal_density((targets.value.array() - mu).matrix(), targets.noise, pair, variance);
  out.value = normal.value + targets.log_jacobian;
  out.by_warp = VectorXd::Zero(warp.size());
  if (warp.size()) {
    out.by_warp(0) = targets.log_jacobian_by_warp + normal.by_residual.dot(targets.by_warp);
  }
  out.by_mu = -normal.by_residual.sum();
  out.by_sigma_n = 2 * sigma_n * normal.by_variance.sum();
  out.by_pair = std::move(normal.by_pair);
  out.by_variance = std::move(normal.by_variance);
  return out;
}

}  // namespace slayr

#endif

// Log density with the Matern kernel of functions/matern.stan, and its derivatives.
#ifndef SLAYR_MATERN_HPP
#define SLAYR_MATERN_HPP

#include "base_kernels.hpp"
#include "gaussian.hpp"

template <typename T, typename Observed, typename Squared>
T matern_log_marginal(const Observed& observed, const Eigen::Matrix<T, -1, 1>& warp, const T& mu, const T& sigma_n,
                      const Squared& sq, const T& sigma_f, const Eigen::Matrix<T, -1, 1>& lengthscale, int p,
                      std::ostream*) {
  using namespace slayr;
  using stan::math::value_of;
  const VectorXd scales = value_of(lengthscale);
  const VectorXd weight = scales.array().square().inverse().matrix();
  const double variance = value_of(sigma_f) * value_of(sigma_f);
  const BaseKernel kernel((sq * weight).array(), Base::Matern, p, VectorXd());
  const ArrayXd covariance = variance * kernel.value;
  const ArrayXd own = ArrayXd::Constant(std::get<0>(observed).size(), variance);
  if constexpr (std::is_same_v<T, double>) {
    return log_density(observed, warp, mu, sigma_n, covariance, own);
  }
  const Marginal density = marginal(observed, value_of(warp), value_of(mu), value_of(sigma_n), covariance, own);
  const VectorXd by_weight = sq.transpose() * (variance * density.by_pair * kernel.by_distance).matrix();

  Node node;
  node.add(warp, density.by_warp);
  node.add(mu, density.by_mu);
  node.add(sigma_n, density.by_sigma_n);
  node.add(sigma_f,
           2 * value_of(sigma_f) * ((density.by_pair * kernel.value).sum() + density.by_variance.sum()));
  node.add(lengthscale, (-2 * by_weight.array() / scales.array().cube()).matrix().eval());
  return node.finish<T>(density.value);
}

#endif

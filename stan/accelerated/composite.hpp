// Log density with the kernel of functions/composite.stan, and its derivatives.
#ifndef SLAYR_COMPOSITE_HPP
#define SLAYR_COMPOSITE_HPP

#include "composite_kernel.hpp"
#include "gaussian.hpp"

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
  CompositeKernel kernel(X, given,
                         {value_of(lengthscale), value_of(period), value_of(rq_alpha), value_of(centre),
                          value_of(feature_lengthscale), value_of(left), value_of(right)},
                         leaf, column, steps);
  const Index N = X.rows(), n_pairs = N * (N - 1) / 2;
  const double variance = value_of(sigma_f) * value_of(sigma_f);
  const ArrayXd k = variance * kernel.value();
  if constexpr (std::is_same_v<T, double>) {
    return log_density(observed, warp, mu, sigma_n, k.head(n_pairs), k.tail(N));
  }
  const Marginal density
      = marginal(observed, value_of(warp), value_of(mu), value_of(sigma_n), k.head(n_pairs), k.tail(N));
  ArrayXd adjoint(k.size());
  adjoint << density.by_pair, density.by_variance;
  kernel.backward(variance * adjoint);

  Node node;
  node.add(warp, density.by_warp);
  node.add(mu, density.by_mu);
  node.add(sigma_n, density.by_sigma_n);
  node.add(sigma_f, 2 * value_of(sigma_f) * (adjoint * kernel.value()).sum());
  node.add(lengthscale, kernel.by.lengthscale);
  node.add(period, kernel.by.period);
  node.add(rq_alpha, kernel.by.rq_alpha);
  node.add(centre, kernel.by.centre);
  node.add(feature_lengthscale, kernel.by.feature_lengthscale);
  node.add(left, kernel.by.left);
  node.add(right, kernel.by.right);
  return node.finish<T>(density.value);
}

#endif

// Log density with the Matern kernels of functions/matern.stan, and its derivatives.
#ifndef SLAYR_MATERN_HPP
#define SLAYR_MATERN_HPP

#include "base_kernels.hpp"
#include "gaussian.hpp"

namespace slayr {

// Sum of Matern kernels of one parameter each, times their variances, and its derivatives.
class MainKernels {
 public:
  VectorXd by_variance, by_lengthscale;  // after backward

  // apart: distances of the pairs in each parameter, one column each.
  template <typename Apart>
  MainKernels(const Apart& apart, const VectorXd& variance, const VectorXd& lengthscale, int p)
      : variance_(variance), lengthscale_(lengthscale), p_(p), distance_(apart.rows(), apart.cols()),
        exponential_(apart.rows(), apart.cols()) {
    for (Index t = 0; t < variance.size(); ++t) {
      distance_.col(t) = std::sqrt(2 * p + 1.0) / lengthscale(t) * apart.col(t).array();
      exponential_.col(t) = (-distance_.col(t)).exp();
    }
  }

  void add_to(ArrayXd& k) const {
    for_blocks([&](Index t, Index start, Index count) {
      k.segment(start, count) += variance_(t) * matern_from(part(distance_, t, start, count),
                                                            part(exponential_, t, start, count), p_);
    });
  }

  // adjoint: derivatives with respect to the sum.
  void backward(const ArrayXd& adjoint) {
    by_variance = VectorXd::Zero(variance_.size());
    by_lengthscale = VectorXd::Zero(variance_.size());
    for_blocks([&](Index t, Index start, Index count) {
      const Part d = part(distance_, t, start, count), e = part(exponential_, t, start, count);
      const auto outer = adjoint.segment(start, count);
      by_variance(t) += (outer * matern_from(d, e, p_)).sum();
      // d M_p'(d), from M_p'(d) = -d M_{p-1}(d) / (2 p - 1)
      const double by_log_distance = p_ > 0 ? (outer * d.square() * matern_from(d, e, p_ - 1)).sum() / (1 - 2.0 * p_)
                                            : -(outer * d * e).sum();
      by_lengthscale(t) -= variance_(t) * by_log_distance / lengthscale_(t);
    });
  }

 private:
  using Part = Eigen::Ref<const ArrayXd>;

  VectorXd variance_, lengthscale_;
  int p_;
  ArrayXXd distance_, exponential_;  // d = sqrt(2 nu) apart / lengthscale, and exp(-d)

  static Part part(const ArrayXXd& values, Index t, Index start, Index count) {
    return values.col(t).segment(start, count);
  }

  // Call f(t, start, count) for the pairs of each parameter, in blocks that stay in a processor's cache.
  template <typename F>
  void for_blocks(F&& f) const {
    const Index block = 512, pairs = distance_.rows();
    for (Index start = 0; start < pairs; start += block) {
      for (Index t = 0; t < variance_.size(); ++t) {
        f(t, start, std::min(block, pairs - start));
      }
    }
  }
};

}  // namespace slayr

template <typename T, typename Observed, typename Squared, typename Apart>
T matern_log_marginal(const Observed& observed, const Eigen::Matrix<T, -1, 1>& warp, const T& mu, const T& sigma_n,
                      const Squared& sq, const T& sigma_f, const Eigen::Matrix<T, -1, 1>& lengthscale, int p,
                      const Apart& apart, const Eigen::Matrix<T, -1, 1>& main_variance,
                      const Eigen::Matrix<T, -1, 1>& main_lengthscale, std::ostream*) {
  using namespace slayr;
  using stan::math::value_of;
  const VectorXd scales = value_of(lengthscale);
  const VectorXd weight = scales.array().square().inverse().matrix();
  const double variance = value_of(sigma_f) * value_of(sigma_f);
  const BaseKernel kernel((sq * weight).array(), Base::Matern, p, VectorXd());
  MainKernels mains(apart, value_of(main_variance), value_of(main_lengthscale), p);
  const double share = 1 / (1 + value_of(main_variance).sum());  // of the kernel of all parameters
  ArrayXd sum = kernel.value;
  mains.add_to(sum);
  const ArrayXd covariance = share * variance * sum;
  const ArrayXd own = ArrayXd::Constant(std::get<0>(observed).size(), variance);
  if constexpr (std::is_same_v<T, double>) {
    return log_density(observed, warp, mu, sigma_n, covariance, own);
  }
  const Marginal density = marginal(observed, value_of(warp), value_of(mu), value_of(sigma_n), covariance, own);
  const ArrayXd adjoint = share * variance * density.by_pair;  // by the sum
  const VectorXd by_weight = sq.transpose() * (adjoint * kernel.by_distance).matrix();
  mains.backward(adjoint);

  Node node;
  node.add(warp, density.by_warp);
  node.add(mu, density.by_mu);
  node.add(sigma_n, density.by_sigma_n);
  node.add(sigma_f,
           2 * value_of(sigma_f) * (share * (density.by_pair * sum).sum() + density.by_variance.sum()));
  node.add(lengthscale, (-2 * by_weight.array() / scales.array().cube()).matrix().eval());
  node.add(main_variance, (mains.by_variance.array() - share * (adjoint * sum).sum()).matrix().eval());
  node.add(main_lengthscale, mains.by_lengthscale);
  return node.finish<T>(density.value);
}

#endif

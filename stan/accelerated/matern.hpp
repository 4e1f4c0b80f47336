// Log density with the Matern kernels of functions/matern.stan, and its derivatives.
#ifndef SLAYR_MATERN_HPP
#define SLAYR_MATERN_HPP

#include "base_kernels.hpp"
#include "gaussian.hpp"

namespace slayr {

// Sum of Matern kernels of one column each, and its derivatives.
class MainKernels {
 public:
  VectorXd by_lengthscale;  // after backward

  // sq: squared differences of the pairs; lengthscale: of each column, or empty.
  template <typename Squared>
  MainKernels(const Squared& sq, const VectorXd& lengthscale, int p)
      : lengthscale_(lengthscale), p_(p), distance_(sq.rows(), lengthscale.size()),
        exponential_(sq.rows(), lengthscale.size()) {
    for (Index t = 0; t < lengthscale.size(); ++t) {
      distance_.col(t) = std::sqrt(2 * p + 1.0) / lengthscale(t) * sq.col(t).array().sqrt();
      exponential_.col(t) = (-distance_.col(t)).exp();
    }
  }

  ArrayXd sum() const {
    ArrayXd k = ArrayXd::Zero(distance_.rows());
    for_blocks([&](Index t, Index start, Index count) {
      k.segment(start, count) += matern_from(part(distance_, t, start, count), part(exponential_, t, start, count), p_);
    });
    return k;
  }

  // adjoint: derivatives with respect to the sum.
  void backward(const ArrayXd& adjoint) {
    by_lengthscale = VectorXd::Zero(lengthscale_.size());
    for_blocks([&](Index t, Index start, Index count) {
      const Part d = part(distance_, t, start, count), e = part(exponential_, t, start, count);
      const auto outer = adjoint.segment(start, count);
      // d M_p'(d), from M_p'(d) = -d M_{p-1}(d) / (2 p - 1)
      const double by_log_distance = p_ > 0 ? (outer * d.square() * matern_from(d, e, p_ - 1)).sum() / (1 - 2.0 * p_)
                                            : -(outer * d * e).sum();
      by_lengthscale(t) -= by_log_distance / lengthscale_(t);
    });
  }

 private:
  using Part = Eigen::Ref<const ArrayXd>;

  VectorXd lengthscale_;
  int p_;
  ArrayXXd distance_, exponential_;  // d = sqrt(2 nu) |x - x~| / lengthscale, and exp(-d)

  static Part part(const ArrayXXd& values, Index t, Index start, Index count) {
    return values.col(t).segment(start, count);
  }

  // Call f(t, start, count) for the pairs of each column, in blocks that stay in a processor's cache.
  template <typename F>
  void for_blocks(F&& f) const {
    const Index block = 512, pairs = distance_.rows();
    for (Index start = 0; start < pairs; start += block) {
      for (Index t = 0; t < lengthscale_.size(); ++t) {
        f(t, start, std::min(block, pairs - start));
      }
    }
  }
};

}  // namespace slayr

// main_variance, main_ratio: see matern_sum_cov.
template <typename T, typename Observed, typename Squared>
T matern_log_marginal(const Observed& observed, const Eigen::Matrix<T, -1, 1>& warp, const T& mu, const T& sigma_n,
                      const Squared& sq, const T& sigma_f, const Eigen::Matrix<T, -1, 1>& lengthscale, int p,
                      const Eigen::Matrix<T, -1, 1>& main_variance, const Eigen::Matrix<T, -1, 1>& main_ratio,
                      std::ostream*) {
  using namespace slayr;
  using stan::math::value_of;
  const VectorXd scales = value_of(lengthscale), ratio = value_of(main_ratio);
  const VectorXd weight = scales.array().square().inverse().matrix();
  const double variance = value_of(sigma_f) * value_of(sigma_f);
  const double relative = value_of(main_variance).sum();
  const double share = 1 / (1 + relative);  // of the function of all columns
  const BaseKernel kernel((sq * weight).array(), Base::Matern, p, VectorXd());
  MainKernels mains(sq, ratio.size() ? VectorXd(ratio(0) * scales) : VectorXd(), p);
  ArrayXd correlation = kernel.value, mean;
  if (ratio.size()) {
    mean = mains.sum() / static_cast<double>(scales.size());
    correlation = share * (correlation + relative * mean);
  }
  const ArrayXd covariance = variance * correlation;
  const ArrayXd own = ArrayXd::Constant(std::get<0>(observed).size(), variance);
  if constexpr (std::is_same_v<T, double>) {
    return log_density(observed, warp, mu, sigma_n, covariance, own);
  }
  const Marginal density = marginal(observed, value_of(warp), value_of(mu), value_of(sigma_n), covariance, own);
  const VectorXd by_weight = sq.transpose() * (share * variance * density.by_pair * kernel.by_distance).matrix();
  VectorXd by_lengthscale = (-2 * by_weight.array() / scales.array().cube()).matrix();

  Node node;
  node.add(warp, density.by_warp);
  node.add(mu, density.by_mu);
  node.add(sigma_n, density.by_sigma_n);
  node.add(sigma_f,
           2 * value_of(sigma_f) * ((density.by_pair * correlation).sum() + density.by_variance.sum()));
  if (ratio.size()) {
    mains.backward(share * relative * variance / static_cast<double>(scales.size()) * density.by_pair);
    by_lengthscale += ratio(0) * mains.by_lengthscale;
    node.add(main_variance,
             VectorXd::Constant(1, share * variance * (density.by_pair * (mean - correlation)).sum()));
    node.add(main_ratio, VectorXd::Constant(1, mains.by_lengthscale.dot(scales)));
  }
  node.add(lengthscale, by_lengthscale);
  return node.finish<T>(density.value);
}

#endif

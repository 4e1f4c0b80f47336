// Log density with the Matern kernels of functions/matern.stan, and its derivatives.
#ifndef SLAYR_MATERN_HPP
#define SLAYR_MATERN_HPP

#include "base_kernels.hpp"
#include "gaussian.hpp"

namespace slayr {

// Sum of Matern kernels of one column each, and its derivatives.
class MainKernels {
 public:
  ArrayXd sum;  // of the pairs

  // sq: squared differences of the pairs; lengthscale: of each column, or empty.
  template <typename Squared>
  MainKernels(const Squared& sq, const VectorXd& lengthscale, int p, bool differentiate)
      : sum(ArrayXd::Zero(sq.rows())), lengthscale_(lengthscale),
        by_log_lengthscale_(differentiate ? sq.rows() : 0, lengthscale.size()) {
    for (Index start = 0; start < sq.rows(); start += BLOCK) {
      const Index count = std::min(BLOCK, sq.rows() - start);
      for (Index t = 0; t < lengthscale.size(); ++t) {
        const Block d = std::sqrt(2 * p + 1.0) / lengthscale(t) * sq.col(t).segment(start, count).array().sqrt();
        const Block e = (-d).exp();
        sum.segment(start, count) += matern_from(d, e, p);
        if (differentiate && p > 0) {  // -d M_p'(d) = d^2 M_{p-1}(d) / (2 p - 1)
          by_log_lengthscale_.col(t).segment(start, count) = d.square() * matern_from(d, e, p - 1) / (2 * p - 1.0);
        } else if (differentiate) {
          by_log_lengthscale_.col(t).segment(start, count) = d * e;
        }
      }
    }
  }

  // Return the derivatives with respect to the length-scales from those with respect to the sum.
  VectorXd by_lengthscale(const ArrayXd& adjoint) const {
    return (by_log_lengthscale_.transpose() * adjoint.matrix()).cwiseQuotient(lengthscale_);
  }

 private:
  static constexpr Index BLOCK = 256;  // pairs that stay in a processor's cache
  using Block = Eigen::Array<double, Eigen::Dynamic, 1, 0, BLOCK, 1>;

  VectorXd lengthscale_;
  MatrixXd by_log_lengthscale_;  // derivatives of the kernel of each column
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
  const MainKernels mains(sq, ratio.size() ? VectorXd(ratio(0) * scales) : VectorXd(), p,
                          !std::is_same_v<T, double>);
  ArrayXd correlation = kernel.value, mean;
  if (ratio.size()) {
    mean = mains.sum / static_cast<double>(scales.size());
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
    const VectorXd by_main
        = mains.by_lengthscale(share * relative * variance / static_cast<double>(scales.size()) * density.by_pair);
    by_lengthscale += ratio(0) * by_main;
    node.add(main_variance,
             VectorXd::Constant(1, share * variance * (density.by_pair * (mean - correlation)).sum()));
    node.add(main_ratio, VectorXd::Constant(1, by_main.dot(scales)));
  }
  node.add(lengthscale, by_lengthscale);
  return node.finish<T>(density.value);
}

#endif

// Log density with the hierarchical kernel of functions/hierarchical.stan, and its derivatives.
#ifndef SLAYR_HIERARCHICAL_HPP
#define SLAYR_HIERARCHICAL_HPP

#include "base_kernels.hpp"
#include "gaussian.hpp"

namespace slayr {

struct Hierarchical {
  // Hyperparameters and structure of the Stan function.
  VectorXd gamma, rho, lengthscale, rq_alpha;
  std::vector<int> levels;
  MatrixXd lineage;
  Base base;
  int p, add;

  // Derivatives with respect to the hyperparameters; set by backward().
  VectorXd by_gamma, by_rho, by_lengthscale, by_rq_alpha;

  Hierarchical(const VectorXd& gamma, const VectorXd& rho, const VectorXd& lengthscale, const VectorXd& rq_alpha,
               const std::vector<int>& levels, const MatrixXd& lineage, int base, int p, int add)
      : gamma(gamma), rho(rho), lengthscale(lengthscale), rq_alpha(rq_alpha), levels(levels), lineage(lineage),
        base(static_cast<Base>(base)), p(p), add(add) {}

  // Return the correlations of pairs; features as in the Stan function.
  template <typename Features>
  ArrayXd forward(const Features& features) {
    const Index pairs = features[0].rows(), D = rho.size();
    weight_.resize(D);
    distance_.resize(pairs, D);
    kernel_.clear();
    ArrayXd k = ArrayXd::Constant(pairs, add ? 0.0 : 1.0);
    for (Index d = 0; d < D; ++d) {
      double omega = 1;
      for (Index g = 0; g < gamma.size(); ++g) {
        omega *= lineage(d, g) > 0 ? gamma(g) : 1.0;
      }
      weight_(d) = std::pow(omega / lengthscale(d), 2);
      distance_.col(d) = features[0].col(d).array();
      if (levels[d] == 0) {
        distance_.col(d) += 4 * (rho(d) * features[2].col(d).array()).sin().square();
      } else {
        distance_.col(d) += 2 * rho(d) * rho(d) / spread(d) * features[1].col(d).array();
      }
      kernel_.emplace_back(weight_(d) * distance_.col(d), base, p, rq_alpha);
      if (add) {
        k += kernel_[d].value;
      } else {
        k *= kernel_[d].value;
      }
    }
    return k;
  }

  // adjoint: derivatives with respect to the correlations that forward() returned.
  template <typename Features>
  void backward(const Features& features, const ArrayXd& adjoint) {
    const Index pairs = features[0].rows(), D = rho.size();
    by_rho = VectorXd::Zero(D);
    by_lengthscale = VectorXd::Zero(D);
    by_gamma = VectorXd::Zero(gamma.size());
    by_rq_alpha = VectorXd::Zero(rq_alpha.size());
    // Products of the factors after each one: dividing the full product by a factor fails if the factor is 0.
    ArrayXXd after = ArrayXXd::Ones(pairs, D);
    for (Index d = D - 2; d >= 0 && !add; --d) {
      after.col(d) = after.col(d + 1) * kernel_[d + 1].value;
    }
    ArrayXd before = adjoint;
    for (Index d = 0; d < D; ++d) {
      const ArrayXd outer = before * after.col(d);
      if (!add) {
        before *= kernel_[d].value;
      }
      const ArrayXd by_scaled = outer * kernel_[d].by_distance;
      const double by_weight = (by_scaled * distance_.col(d)).sum();
      if (levels[d] == 0) {
        const auto angle = features[2].col(d).array();
        by_rho(d) = 4 * weight_(d) * (by_scaled * angle * (2 * rho(d) * angle).sin()).sum();
      } else {
        const double q = spread(d), r = rho(d);
        const double by_jump = 4 * r / q + 4 * r * r * (levels[d] - 1) * (1 - r) / (q * q);
        by_rho(d) = by_jump * weight_(d) * (by_scaled * features[1].col(d).array()).sum();
      }
      by_lengthscale(d) = -2 * by_weight * weight_(d) / lengthscale(d);
      for (Index g = 0; g < gamma.size(); ++g) {
        if (lineage(d, g) > 0) {
          by_gamma(g) += 2 * by_weight * weight_(d) / gamma(g);
        }
      }
      if (rq_alpha.size()) {
        by_rq_alpha(0) += (outer * kernel_[d].by_rq_alpha).sum();
      }
    }
  }

 private:
  double spread(Index d) const { return 1 + (levels[d] - 1) * std::pow(1 - rho(d), 2); }

  VectorXd weight_;    // omega^2 / lengthscale^2
  ArrayXXd distance_;  // squared distances without weight_; one column per dimension
  std::vector<BaseKernel> kernel_;
};

}  // namespace slayr

// hyper, structure: the tuples of the Stan function.
template <typename T, typename Observed, typename Features, typename Hyper, typename Structure>
T hierarchical_log_marginal(const Observed& observed, const Eigen::Matrix<T, -1, 1>& warp, const T& mu,
                            const T& sigma_n, const Features& features, const T& sigma_f, const Hyper& hyper,
                            const Structure& structure, std::ostream*) {
  using namespace slayr;
  using stan::math::value_of;
  const auto& [gamma, rho, lengthscale, rq_alpha] = hyper;
  const auto& [levels, lineage, base, p, add] = structure;
  Hierarchical tree(value_of(gamma), value_of(rho), value_of(lengthscale), value_of(rq_alpha), levels, lineage, base,
                    p, add);
  const double sd = value_of(sigma_f), own = add ? static_cast<double>(rho.size()) : 1.0;
  const ArrayXd correlation = tree.forward(features);
  const ArrayXd covariance = sd * sd * correlation;
  const ArrayXd variance = ArrayXd::Constant(std::get<0>(observed).size(), own * sd * sd);
  if constexpr (std::is_same_v<T, double>) {
    return log_density(observed, warp, mu, sigma_n, covariance, variance);
  }
  const Marginal density = marginal(observed, value_of(warp), value_of(mu), value_of(sigma_n), covariance, variance);
  tree.backward(features, sd * sd * density.by_pair);

  Node node;
  node.add(warp, density.by_warp);
  node.add(mu, density.by_mu);
  node.add(sigma_n, density.by_sigma_n);
  node.add(sigma_f, 2 * sd * ((density.by_pair * correlation).sum() + own * density.by_variance.sum()));
  node.add(gamma, tree.by_gamma);
  node.add(rho, tree.by_rho);
  node.add(lengthscale, tree.by_lengthscale);
  node.add(rq_alpha, tree.by_rq_alpha);
  return node.finish<T>(density.value);
}

#endif

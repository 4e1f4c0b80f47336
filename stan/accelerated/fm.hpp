// Log density with the kernel of functions/frequency_modulated.stan, and its derivatives.
#ifndef SLAYR_FM_HPP
#define SLAYR_FM_HPP

#include "hierarchical.hpp"

namespace slayr {

// Codes of functions/frequency_modulated.stan.
enum class Modulator { Laplacian = 1, Power, Neural, Diffusion, Hierarchical };
enum class Combine { Modulated, Product, Sum };

// The distance t that modulates, and its derivatives.
struct Modulation {
  Modulator modulator;
  double tau;
  VectorXd lengthscale, bias;
  Hierarchical tree;
  VectorXd by_lengthscale, by_bias;

  Modulation(Modulator modulator, double tau, const VectorXd& lengthscale, const VectorXd& bias,
             const Hierarchical& tree)
      : modulator(modulator), tau(tau), lengthscale(lengthscale), bias(bias), tree(tree) {}

  template <typename Features>
  ArrayXd forward(const Features& features) {
    const VectorXd weight = lengthscale.array().square().inverse().matrix();
    if (modulator == Modulator::Hierarchical) {
      const double bound = tree.add ? static_cast<double>(tree.rho.size()) : 1.0;
      return bound - tree.forward(features);
    }
    squared_ = (features[0] * weight).array();
    if (modulator == Modulator::Power && tau < 2) {
      return squared_.pow(0.5 * tau);
    }
    if (modulator == Modulator::Neural) {
      left_ = bias(0) * bias(0) + (features[1] * weight).array();
      right_ = bias(0) * bias(0) + (features[2] * weight).array();
      inner_ = 0.5 * (left_ + right_ - squared_);
      root_ = (1 + 2 * (left_ + right_) + 4 * (left_ * right_ - inner_.square())).max(1.0).sqrt();
      ArrayXd angle(inner_.size());
      for (Index i = 0; i < angle.size(); ++i) {
        angle(i) = std::atan2(2 * inner_(i), root_(i));
      }
      return 1 - 2 / stan::math::pi() * angle;
    }
    return squared_;
  }

  template <typename Features>
  void backward(const Features& features, const ArrayXd& adjoint) {
    by_bias = VectorXd::Zero(bias.size());
    if (modulator == Modulator::Hierarchical) {
      tree.backward(features, -adjoint);
      by_lengthscale = tree.by_lengthscale;
      return;
    }
    VectorXd by_weight;
    if (modulator == Modulator::Neural) {
      // sin(angle) = 2 c / sqrt(A B), A = 1 + 2 a, B = 1 + 2 b, cos(angle) = root / sqrt(A B).
      const ArrayXd by_angle = -2 / stan::math::pi() * adjoint / root_;
      const ArrayXd by_inner = 2 * by_angle;
      const ArrayXd by_left = -2 * by_angle * inner_ / (1 + 2 * left_);
      const ArrayXd by_right = -2 * by_angle * inner_ / (1 + 2 * right_);
      by_weight = features[1].transpose() * (by_left + 0.5 * by_inner).matrix()
                  + features[2].transpose() * (by_right + 0.5 * by_inner).matrix()
                  - features[0].transpose() * (0.5 * by_inner).matrix();
      by_bias(0) = 2 * bias(0) * (by_left + by_right + by_inner).sum();
    } else if (modulator == Modulator::Power && tau < 2) {
      const ArrayXd safe = (squared_ > 0).select(squared_, 1.0);
      const ArrayXd slope = (squared_ > 0).select(0.5 * tau * safe.pow(0.5 * tau - 1), 0.0);
      by_weight = features[0].transpose() * (adjoint * slope).matrix();
    } else {
      by_weight = features[0].transpose() * adjoint.matrix();
    }
    by_lengthscale = (-2 * by_weight.array() / lengthscale.array().cube()).matrix();
  }

 private:
  ArrayXd squared_, left_, right_, inner_, root_;
};

// sum_g W_g f(lambda_g, y) on one graph, and its derivatives with respect to y = alpha t, beta and the weights.
struct OnGraph {
  ArrayXd value, by_y, by_beta;
  ArrayXXd by_weights;

  template <typename W, typename Lambda>
  OnGraph(const W& vertex_weights, Index first, Index count, const Lambda& lambda, const ArrayXd& y, double beta,
          const VectorXd& weights, Modulator modulator) {
    const Index pairs = vertex_weights.rows(), N = weights.size();
    value = by_y = by_beta = ArrayXd::Zero(pairs);
    if (modulator == Modulator::Power) {
      by_weights = ArrayXXd::Zero(pairs, N);
    }
    for (Index g = first; g < first + count; ++g) {
      const auto weight = vertex_weights.col(g).array();
      const double z = beta * lambda(g);
      if (modulator == Modulator::Diffusion) {
        const ArrayXd term = weight * (-z * (1 + y)).exp();
        value += term;
        by_y -= z * term;
        by_beta -= lambda(g) * (1 + y) * term;
        continue;
      }
      const ArrayXd u = (1 + z + y).inverse();
      if (modulator != Modulator::Power) {
        const ArrayXd term = weight * u, slope = -term * u;
        value += term;
        by_y += slope;
        by_beta += lambda(g) * slope;
        continue;
      }
      ArrayXd power = weight * u;
      for (Index n = 0; n < N; ++n) {
        by_weights.col(n) += power;
        value += weights(n) * power;
        power *= u;
        const ArrayXd slope = -(n + 1) * weights(n) * power;
        by_y += slope;
        by_beta += lambda(g) * slope;
      }
    }
  }
};

}  // namespace slayr

// pairs, hyper, structure: the tuples of the Stan function.
template <typename T, typename Observed, typename Pairs, typename Hyper, typename Structure>
T fm_log_marginal(const Observed& observed, const Eigen::Matrix<T, -1, 1>& warp, const T& mu, const T& sigma_n,
                  const Pairs& pairs, const Hyper& hyper, const Structure& structure, std::ostream*) {
  using namespace slayr;
  using stan::math::value_of;
  const auto& [features, vertex_weights] = pairs;
  const auto& [sigma_f, distance, of_graphs] = hyper;
  const auto& [lengthscale, bias, gamma, rho, rq_alpha] = distance;
  const auto& [alpha, beta, weights] = of_graphs;
  const auto& [modulator_code, tau, lineage, base, p, add] = std::get<0>(structure);
  const auto& [graph_modulator, combine_code, lambda, graph_of] = std::get<1>(structure);
  const Modulator modulator = static_cast<Modulator>(modulator_code);
  const Combine combine = static_cast<Combine>(combine_code);
  const Index N = std::get<0>(observed).size(), rows = vertex_weights.rows(), P = beta.size();

  const Hierarchical tree(value_of(gamma), value_of(rho), value_of(lengthscale), value_of(rq_alpha),
                          std::vector<int>(rho.size(), 0), lineage, base, p, add);
  Modulation modulation(modulator, tau, tree.lengthscale, value_of(bias), tree);
  const ArrayXd t = modulation.forward(features);
  const VectorXd strength = value_of(alpha), damping = value_of(beta), shares = value_of(weights);
  const bool modulated = combine == Combine::Modulated;
  const ArrayXd zero = ArrayXd::Zero(modulated ? 0 : rows);

  std::vector<OnGraph> graphs;
  std::vector<ArrayXd> before{ArrayXd::Ones(rows)};  // products of the graphs before each
  Index first = 0;
  for (Index q = 0; q < P; ++q) {
    Index count = 0;
    while (first + count < static_cast<Index>(graph_of.size()) && graph_of[first + count] == q + 1) {
      ++count;
    }
    graphs.emplace_back(vertex_weights, first, count, lambda, modulated ? ArrayXd(strength(q) * t) : zero, damping(q),
                        shares, modulator);
    before.push_back(before.back() * graphs.back().value);
    first += count;
  }
  const BaseKernel of_inputs(modulated ? ArrayXd() : t, static_cast<Base>(base), p, tree.rq_alpha);
  const ArrayXd& smooth = of_inputs.value;
  const ArrayXd correlation = modulated ? before.back()
                              : combine == Combine::Product ? ArrayXd(before.back() * smooth)
                                                            : ArrayXd(before.back() + smooth);
  const double variance = value_of(sigma_f) * value_of(sigma_f);
  const ArrayXd k = variance * correlation;
  if constexpr (std::is_same_v<T, double>) {
    return log_density(observed, warp, mu, sigma_n, k.head(rows - N), k.tail(N));
  }
  const Marginal density
      = marginal(observed, value_of(warp), value_of(mu), value_of(sigma_n), k.head(rows - N), k.tail(N));

  ArrayXd adjoint(rows);
  adjoint << density.by_pair, density.by_variance;
  ArrayXd by_t = ArrayXd::Zero(rows);
  ArrayXd after = variance * adjoint;  // times the factors after each graph
  if (!modulated) {
    by_t = after * of_inputs.by_distance * (combine == Combine::Product ? before.back() : ArrayXd::Ones(rows));
    if (combine == Combine::Product) {
      after *= smooth;
    }
  }
  VectorXd by_alpha = VectorXd::Zero(P), by_beta = VectorXd::Zero(P), by_weights = VectorXd::Zero(shares.size());
  for (Index q = P - 1; q >= 0; --q) {
    const ArrayXd outer = after * before[q];
    by_beta(q) = (outer * graphs[q].by_beta).sum();
    if (modulated) {
      const ArrayXd by_y = outer * graphs[q].by_y;
      by_alpha(q) = (by_y * t).sum();
      by_t += strength(q) * by_y;
    }
    if (modulator == Modulator::Power) {
      by_weights += (graphs[q].by_weights.matrix().transpose() * outer.matrix());
    }
    after *= graphs[q].value;
  }
  modulation.backward(features, by_t);

  Node node;
  node.add(warp, density.by_warp);
  node.add(mu, density.by_mu);
  node.add(sigma_n, density.by_sigma_n);
  node.add(sigma_f, 2 * value_of(sigma_f) * (adjoint * correlation).sum());
  node.add(lengthscale, modulation.by_lengthscale);
  node.add(alpha, by_alpha);
  node.add(beta, by_beta);
  node.add(weights, by_weights);
  node.add(bias, modulation.by_bias);
  node.add(gamma, modulation.tree.by_gamma);
  node.add(rho, modulation.tree.by_rho);
  node.add(rq_alpha, modulation.tree.by_rq_alpha);
  return node.finish<T>(density.value);
}

#endif

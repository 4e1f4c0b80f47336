// Definitions of the functions that slayr.stan declares: the USER_HEADER of a program that includes it.
#ifndef SLAYR_EXPORT_HPP
#define SLAYR_EXPORT_HPP

#include "../accelerated/composite_kernel.hpp"
#include <numeric>
#include <string>

namespace slayr {

using Integers = std::vector<int>;

// An expression as CompositeKernel reads it, and the numbers of hyperparameters of its leaves.
struct Expression {
  std::vector<Integers> leaf;
  Integers column, steps;
  int n_lengthscale = 0, n_period = 0, n_rq_alpha = 0, n_centre = 0, n_sums = 0;

  // steps, kind, reads: arguments of slayr_composite_lpdf; columns: of the inputs.
  Expression(const std::string& function, const Integers& given_steps, const Integers& kind,
             const std::vector<Integers>& reads, Index columns)
      : function_(function) {
    require(kind.size() == reads.size(), "kind has " + std::to_string(kind.size()) + " leaves, reads has "
                                             + std::to_string(reads.size()) + "; give a row of reads for each leaf");
    for (std::size_t l = 0; l < kind.size(); ++l) {
      add_leaf(kind[l], reads[l], columns);
    }
    std::size_t depth = 0;
    for (const int step : given_steps) {
      require(step >= -1 && step <= static_cast<int>(kind.size()),
              "step " + std::to_string(step) + " is not a leaf, 0 for a product or -1 for a sum");
      require(step > 0 || depth >= 2, "a sum or product in steps has fewer than two operands before it");
      steps.push_back(step == -1 ? -++n_sums : step);
      depth = step > 0 ? depth + 1 : depth - 1;
    }
    require(depth == 1, "steps leave " + std::to_string(depth) + " values instead of one; write them in postfix order");
  }

 private:
  std::string function_;

  void require(bool holds, const std::string& otherwise) const {
    if (!holds) {
      throw std::invalid_argument(function_ + ": " + otherwise);
    }
  }

  void add_leaf(int kind, const Integers& reads, Index columns) {
    const std::string name = "leaf " + std::to_string(leaf.size() + 1);
    require(kind >= static_cast<int>(Leaf::SE) && kind <= static_cast<int>(Leaf::Constant),
            name + " has kind " + std::to_string(kind) + "; use 1 to 8");
    require(static_cast<Index>(reads.size()) == columns,
            name + " has " + std::to_string(reads.size()) + " entries in reads; give one for each column of X");
    const int count = std::accumulate(reads.begin(), reads.end(), 0);
    require((kind == static_cast<int>(Leaf::Constant)) == (count == 0),
            name + " reads " + std::to_string(count) + " columns; a constant reads none, any other leaf at least one");
    const auto numbers_from = [](int& used, int of_leaf) {
      used += of_leaf;
      return of_leaf ? used - of_leaf + 1 : 0;
    };
    const int first = n_lengthscale + 1;
    for (std::size_t c = 0; c < reads.size(); ++c) {
      require(reads[c] == 0 || reads[c] == 1, name + " has " + std::to_string(reads[c]) + " in reads; use 0 or 1");
      if (reads[c]) {
        column.push_back(c + 1);
      }
    }
    n_lengthscale += count;
    const int of_period = numbers_from(n_period, kind == static_cast<int>(Leaf::Periodic));
    const int of_alpha = numbers_from(n_rq_alpha, kind == static_cast<int>(Leaf::RQ));
    const int of_centre = numbers_from(n_centre, kind == static_cast<int>(Leaf::Linear) ? count : 0);
    leaf.push_back({kind, count, count ? first : 1, of_period, of_alpha, of_centre, 0, 0});
  }
};

// One leaf that reads all columns. Without columns it is a constant.
inline Expression one_leaf(const std::string& function, Leaf kind, Index columns) {
  return {function, {1}, {static_cast<int>(columns ? kind : Leaf::Constant)}, {Integers(columns, 1)}, columns};
}

inline Leaf matern_leaf(const std::string& function, int p) {
  if (p < 0 || p > 2) {
    throw std::invalid_argument(function + ": p is " + std::to_string(p) + "; use 0, 1 or 2");
  }
  return static_cast<Leaf>(static_cast<int>(Leaf::Matern0) + p);
}

// The expression with the standard deviations s of its leaves as sigma^2 e, where e has the leaves without s:
//   (a s_1)^2 e_1 (b s_2)^2 e_2 = (a s_1 b s_2)^2 e_1 e_2,   (a s_1)^2 e_1 + (b s_2)^2 e_2 = left e_1 + right e_2.
template <typename T>
struct Amplitudes {
  T sigma;
  Eigen::Matrix<T, -1, 1> left, right;

  Amplitudes(const Expression& expression, const Eigen::Matrix<T, -1, 1>& of_leaf)
      : left(expression.n_sums), right(expression.n_sums) {
    std::vector<T> stack;
    for (const int step : expression.steps) {
      if (step > 0) {
        stack.push_back(of_leaf(step - 1));
        continue;
      }
      const T b = stack.back();
      stack.pop_back();
      if (step == 0) {
        stack.back() = stack.back() * b;
      } else {
        left(-step - 1) = stack.back() * stack.back();
        right(-step - 1) = b * b;
        stack.back() = T(1);
      }
    }
    sigma = stack.back();
  }
};

// Hyperparameters of an expression. An argument of Stan may be an expression of Eigen: plain values are evaluated once.
template <typename SigmaF, typename Lengthscale, typename Period, typename Alpha, typename Centre>
struct Hyperparameters {
  stan::plain_type_t<SigmaF> sigma_f;
  stan::plain_type_t<Lengthscale> lengthscale;
  stan::plain_type_t<Period> period;
  stan::plain_type_t<Alpha> rq_alpha;
  stan::plain_type_t<Centre> centre;

  Hyperparameters(const SigmaF& sigma_f, const Lengthscale& lengthscale, const Period& period, const Alpha& rq_alpha,
                  const Centre& centre)
      : sigma_f(sigma_f), lengthscale(lengthscale), period(period), rq_alpha(rq_alpha), centre(centre) {}

  void check(const char* function, const Expression& expression) const {
    using namespace stan::math;
    check_size_match(function, "leaves", expression.leaf.size(), "sigma_f", sigma_f.size());
    check_size_match(function, "columns that the leaves read", expression.n_lengthscale, "lengthscale",
                     lengthscale.size());
    check_size_match(function, "periodic leaves", expression.n_period, "period", period.size());
    check_size_match(function, "rational quadratic leaves", expression.n_rq_alpha, "rq_alpha", rq_alpha.size());
    check_size_match(function, "columns of linear leaves", expression.n_centre, "centre", centre.size());
    check_nonnegative(function, "sigma_f", value_of(sigma_f));
    check_positive_finite(function, "lengthscale", value_of(lengthscale));
    check_positive_finite(function, "period", value_of(period));
    check_positive_finite(function, "rq_alpha", value_of(rq_alpha));
    check_finite(function, "centre", value_of(centre));
  }

  CompositeHyper values(const VectorXd& left, const VectorXd& right) const {
    using stan::math::value_of;
    return {value_of(lengthscale), value_of(period), value_of(rq_alpha), value_of(centre), VectorXd(), left, right};
  }
};

template <typename Scalar>
auto one(const Scalar& value) {
  using Values = Eigen::Matrix<stan::return_type_t<Scalar>, -1, 1>;  // an integer literal becomes double
  return Values(Values::Constant(1, value));
}

// sigma_n: a standard deviation, or one for each observation.
template <typename SigmaN>
VectorXd noise_of(const SigmaN& sigma_n, Index n) {
  if constexpr (stan::is_stan_scalar<SigmaN>::value) {
    return VectorXd::Constant(n, stan::math::value_of(sigma_n));
  } else {
    return stan::math::value_of(sigma_n);
  }
}

template <typename Y, typename Mu, typename SigmaN, typename... Of>
stan::return_type_t<Y, Mu, SigmaN, Of...> expression_density(const char* function, const Expression& expression,
                                                             const Y& y_argument, const Mu& mu_argument,
                                                             const MatrixXd& X, const Hyperparameters<Of...>& hyper,
                                                             const SigmaN& sigma_n_argument) {
  using namespace stan::math;
  using Result = stan::return_type_t<Y, Mu, SigmaN, Of...>;
  const stan::plain_type_t<Y> y = y_argument;
  const stan::plain_type_t<Mu> mu = mu_argument;
  const stan::plain_type_t<SigmaN> sigma_n = sigma_n_argument;
  const VectorXd noise_sd = noise_of(sigma_n, y.size());
  check_size_match(function, "y", y.size(), "mu", mu.size());
  check_size_match(function, "y", y.size(), "rows of X", X.rows());
  check_size_match(function, "y", y.size(), "sigma_n", noise_sd.size());
  hyper.check(function, expression);
  check_not_nan(function, "y", value_of(y));
  check_finite(function, "mu", value_of(mu));
  check_finite(function, "X", X);
  check_nonnegative(function, "sigma_n", noise_sd);

  const Amplitudes amplitudes(expression, hyper.sigma_f);
  const VectorXd left = value_of(amplitudes.left), right = value_of(amplitudes.right);
  CompositeKernel kernel(X, MatrixXd(), hyper.values(left, right), expression.leaf, expression.column,
                         expression.steps);
  const Index N = X.rows(), n_pairs = N * (N - 1) / 2;
  const double sigma = value_of(amplitudes.sigma);
  const ArrayXd k = sigma * sigma * kernel.value();
  const VectorXd residual = value_of(y) - value_of(mu);
  if constexpr (std::is_same_v<Result, double>) {
    return normal_value(residual, noise_sd.array().square(), k.head(n_pairs), k.tail(N));
  }
  const NormalDensity density = normal_density(residual, noise_sd.array().square(), k.head(n_pairs), k.tail(N));
  ArrayXd adjoint(k.size());
  adjoint << density.by_pair, density.by_variance;
  kernel.backward(sigma * sigma * adjoint);
  const VectorXd by_noise = 2 * noise_sd.array() * density.by_variance;

  Node node;
  node.add(y, density.by_residual);
  node.add(mu, (-density.by_residual).eval());
  node.add(amplitudes.sigma, 2 * sigma * (adjoint * kernel.value()).sum());
  node.add(amplitudes.left, kernel.by.left);
  node.add(amplitudes.right, kernel.by.right);
  node.add(hyper.lengthscale, kernel.by.lengthscale);
  node.add(hyper.period, kernel.by.period);
  node.add(hyper.rq_alpha, kernel.by.rq_alpha);
  node.add(hyper.centre, kernel.by.centre);
  if constexpr (stan::is_stan_scalar<SigmaN>::value) {
    node.add(sigma_n, by_noise.sum());
  } else {
    node.add(sigma_n, by_noise);
  }
  return node.finish<Result>(density.value);
}

template <typename... Of>
MatrixXd expression_covariance(const char* function, const Expression& expression, const MatrixXd& X,
                               const Hyperparameters<Of...>& hyper) {
  static_assert(std::is_same_v<stan::return_type_t<Of...>, double>,
                "slayr_*_cov has no gradient: call it in generated quantities, and slayr_*_lpdf in the model block");
  hyper.check(function, expression);
  stan::math::check_finite(function, "X", X);
  const Amplitudes amplitudes(expression, hyper.sigma_f);
  const CompositeKernel kernel(X, MatrixXd(), hyper.values(amplitudes.left, amplitudes.right), expression.leaf,
                               expression.column, expression.steps);
  const ArrayXd k = amplitudes.sigma * amplitudes.sigma * kernel.value();
  const Index N = X.rows();
  return lower_covariance(k.head(N * (N - 1) / 2), k.tail(N)).selfadjointView<Eigen::Lower>();
}

}  // namespace slayr

template <bool propto, typename Y, typename Mu, typename X, typename SigmaF, typename Lengthscale, typename SigmaN>
stan::return_type_t<Y, Mu, SigmaF, Lengthscale, SigmaN> slayr_matern_lpdf(const Y& y, const Mu& mu, const X& x,
                                                                          const SigmaF& sigma_f,
                                                                          const Lengthscale& lengthscale,
                                                                          const SigmaN& sigma_n, int p,
                                                                          std::ostream* = nullptr) {
  const auto expression = slayr::one_leaf("slayr_matern_lpdf", slayr::matern_leaf("slayr_matern_lpdf", p), x.cols());
  const Eigen::VectorXd none;
  const slayr::Hyperparameters hyper(slayr::one(sigma_f), lengthscale, none, none, none);
  return slayr::expression_density("slayr_matern_lpdf", expression, y, mu, x, hyper, sigma_n);
}

template <bool propto, typename Y, typename Mu, typename X, typename SigmaF, typename Lengthscale, typename SigmaN>
stan::return_type_t<Y, Mu, SigmaF, Lengthscale, SigmaN> slayr_exp_quad_lpdf(const Y& y, const Mu& mu, const X& x,
                                                                            const SigmaF& sigma_f,
                                                                            const Lengthscale& lengthscale,
                                                                            const SigmaN& sigma_n,
                                                                            std::ostream* = nullptr) {
  const auto expression = slayr::one_leaf("slayr_exp_quad_lpdf", slayr::Leaf::SE, x.cols());
  const Eigen::VectorXd none;
  const slayr::Hyperparameters hyper(slayr::one(sigma_f), lengthscale, none, none, none);
  return slayr::expression_density("slayr_exp_quad_lpdf", expression, y, mu, x, hyper, sigma_n);
}

template <bool propto, typename Y, typename Mu, typename X, typename SigmaF, typename Lengthscale, typename Period,
          typename Alpha, typename Centre, typename SigmaN>
stan::return_type_t<Y, Mu, SigmaF, Lengthscale, Period, Alpha, Centre, SigmaN> slayr_composite_lpdf(
    const Y& y, const Mu& mu, const X& x, const std::vector<int>& steps, const std::vector<int>& kind,
    const std::vector<std::vector<int>>& reads, const SigmaF& sigma_f, const Lengthscale& lengthscale,
    const Period& period, const Alpha& rq_alpha, const Centre& centre, const SigmaN& sigma_n,
    std::ostream* = nullptr) {
  const slayr::Expression expression("slayr_composite_lpdf", steps, kind, reads, x.cols());
  const slayr::Hyperparameters hyper(sigma_f, lengthscale, period, rq_alpha, centre);
  return slayr::expression_density("slayr_composite_lpdf", expression, y, mu, x, hyper, sigma_n);
}

template <typename X, typename SigmaF, typename Lengthscale>
Eigen::MatrixXd slayr_matern_cov(const X& x, const SigmaF& sigma_f, const Lengthscale& lengthscale, int p,
                                 std::ostream* = nullptr) {
  const auto expression = slayr::one_leaf("slayr_matern_cov", slayr::matern_leaf("slayr_matern_cov", p), x.cols());
  const Eigen::VectorXd none;
  const slayr::Hyperparameters hyper(slayr::one(sigma_f), lengthscale, none, none, none);
  return slayr::expression_covariance("slayr_matern_cov", expression, x, hyper);
}

template <typename X, typename SigmaF, typename Lengthscale>
Eigen::MatrixXd slayr_exp_quad_cov(const X& x, const SigmaF& sigma_f, const Lengthscale& lengthscale,
                                   std::ostream* = nullptr) {
  const auto expression = slayr::one_leaf("slayr_exp_quad_cov", slayr::Leaf::SE, x.cols());
  const Eigen::VectorXd none;
  const slayr::Hyperparameters hyper(slayr::one(sigma_f), lengthscale, none, none, none);
  return slayr::expression_covariance("slayr_exp_quad_cov", expression, x, hyper);
}

template <typename X, typename SigmaF, typename Lengthscale, typename Period, typename Alpha, typename Centre>
Eigen::MatrixXd slayr_composite_cov(const X& x, const std::vector<int>& steps, const std::vector<int>& kind,
                                    const std::vector<std::vector<int>>& reads, const SigmaF& sigma_f,
                                    const Lengthscale& lengthscale, const Period& period, const Alpha& rq_alpha,
                                    const Centre& centre, std::ostream* = nullptr) {
  const slayr::Expression expression("slayr_composite_cov", steps, kind, reads, x.cols());
  const slayr::Hyperparameters hyper(sigma_f, lengthscale, period, rq_alpha, centre);
  return slayr::expression_covariance("slayr_composite_cov", expression, x, hyper);
}

#endif

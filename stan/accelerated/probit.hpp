// Laplace approximation of functions/probit.stan: binary observations of a latent Gaussian process.
//
// Symbols as there, and R = W^1/2 B^-1 W^1/2. The derivatives are those of Rasmussen & Williams (2006), algorithm 5.1:
// the mode f moves with the hyperparameters, so that
//
//   d log Z = 1/2 tr((a a' - R) dK) + q' dK g + 1'(a + q) dmu,   a = g = K^-1 (f - mu),   q = s - R K s,
//
// where s_i = S_ii d^3 log Phi(y_i f_i) / 2 is the derivative of -log|B| / 2 by f_i, and S = K - K R K is the
// covariance of the approximation.
#ifndef SLAYR_PROBIT_HPP
#define SLAYR_PROBIT_HPP

namespace slayr {

class Probit {
 public:
  // y: 1 or -1; lower: covariance of the function, lower triangle.
  Probit(const VectorXd& y, double mu, const MatrixXd& lower)
      : y_(y), mu_(mu), K_(lower.selfadjointView<Eigen::Lower>()), a_(VectorXd::Zero(y.size())),
        f_(VectorXd::Constant(y.size(), mu)) {
    double value = objective(a_, f_);
    for (int step = 0; step < 50; ++step) {
      factorise();
      const VectorXd b = (W_ * (f_.array() - mu_)).matrix() + g_;
      const VectorXd direction = b - solve(K_ * b) - a_;
      const double before = value;
      for (double size = 1;; size /= 2) {
        const VectorXd a = a_ + size * direction, f = (mu_ + (K_ * a).array()).matrix();
        value = objective(a, f);
        if (value >= before || size < 1e-3) {
          a_ = a;
          f_ = f;
          break;
        }
      }
      if (std::abs(value - before) < 1e-14 * (1 + std::abs(value))) {
        break;
      }
    }
    factorise();
  }

  double log_marginal() const {
    return objective(g_, f_) - L_.diagonal().array().log().sum();
  }

  // Fill in a Marginal; the warp and sigma_n have no part in this likelihood.
  template <typename Marginal>
  void differentiate(Marginal& out) const {
    const Index n = y_.size();
    const MatrixXd C = L_.template triangularView<Eigen::Lower>().solve(root_.matrix().asDiagonal() * K_);
    const ArrayXd z = y_.array() * f_.array(), total = ratio_ + z;
    const ArrayXd third = y_.array() * ratio_ * (total.square() + ratio_ * total - 1);
    const VectorXd s = (0.5 * (K_.diagonal() - C.colwise().squaredNorm().transpose()).array() * third).matrix();
    const VectorXd q = s - solve(K_ * s);
    const MatrixXd half = L_.template triangularView<Eigen::Lower>().solve(MatrixXd(root_.matrix().asDiagonal()));
    const MatrixXd R = half.transpose() * half;
    out.value = log_marginal();
    out.by_pair.resize(n * (n - 1) / 2);
    for (Index j = 0, start = 0; j < n; start += n - 1 - j, ++j) {
      const Index rest = n - 1 - j;
      out.by_pair.segment(start, rest) = g_(j) * g_.tail(rest).array() - R.col(j).tail(rest).array()
                                         + q(j) * g_.tail(rest).array() + g_(j) * q.tail(rest).array();
    }
    out.by_variance = 0.5 * (g_.array().square() - R.diagonal().array()) + q.array() * g_.array();
    out.by_warp.resize(0);
    out.by_mu = g_.sum() + q.sum();
    out.by_sigma_n = 0;
  }

 private:
  double objective(const VectorXd& a, const VectorXd& f) const {
    double value = -0.5 * a.dot((f.array() - mu_).matrix());
    for (Index i = 0; i < y_.size(); ++i) {
      value += stan::math::std_normal_lcdf(y_(i) * f(i));
    }
    return value;
  }

  // Derivatives of the likelihood at f, and the factor of B there.
  void factorise() {
    const Index n = y_.size();
    ratio_.resize(n);
    for (Index i = 0; i < n; ++i) {
      const double z = y_(i) * f_(i);
      ratio_(i) = std::exp(-0.5 * z * z - 0.5 * std::log(2 * stan::math::pi()) - stan::math::std_normal_lcdf(z));
    }
    g_ = (y_.array() * ratio_).matrix();
    W_ = ratio_ * (ratio_ + y_.array() * f_.array());
    root_ = W_.sqrt();
    L_ = root_.matrix().asDiagonal() * K_ * root_.matrix().asDiagonal();
    L_.diagonal().array() += 1;
    Eigen::LLT<Eigen::Ref<MatrixXd>> factor(L_);
  }

  // R x.
  VectorXd solve(const VectorXd& x) const {
    VectorXd scaled = (root_ * x.array()).matrix();
    L_.triangularView<Eigen::Lower>().solveInPlace(scaled);
    L_.triangularView<Eigen::Lower>().transpose().solveInPlace(scaled);
    return (root_ * scaled.array()).matrix();
  }

  VectorXd y_;
  double mu_;
  MatrixXd K_;
  VectorXd a_, f_, g_;
  ArrayXd ratio_, W_, root_;
  MatrixXd L_;
};

}  // namespace slayr

#endif

#pragma once
// Stan's header of a program, with another base class between stan::model::model_base and the generated class. Stan's own
// class compiles each density sixteen times and the generated quantities twice: for every combination of double or var,
// with or without constants, with or without the Jacobian, and Eigen or standard vectors. The services of this Stan
// version, which is all that the front end calls, use gradients without constants and values with constants, so this
// class compiles four densities and converts standard vectors. If no parameter has constraints, two are enough.
#define STAN_MODEL_MODEL_BASE_CRTP_HPP

#include "tbb.hpp"

#include <stan/math.hpp>
#include <stan/model/model_base.hpp>

#include <ostream>
#include <stdexcept>
#include <vector>

namespace stan {
namespace model {

template <typename M>
class model_base_crtp : public model_base {
  template <typename T>
  using Vector = Eigen::Matrix<T, -1, 1>;
  using Reals = std::vector<double>;
  using Vars = std::vector<math::var>;
  using Integers = std::vector<int>;
  using Messages = std::ostream*;

#ifdef SLAYR_NO_JACOBIAN
  static constexpr bool JACOBIAN = false;
#else
  static constexpr bool JACOBIAN = true;
#endif

  const M& self() const { return *static_cast<const M*>(this); }

  template <typename T>
  static Vector<T> copy(const std::vector<T>& values) {
    return Eigen::Map<const Vector<T>>(values.data(), values.size());
  }

  [[noreturn]] static void missing() {
    throw std::logic_error("This density is not compiled: gradients have no constants, and values have them");
  }

 public:
  using model_base::model_base;

  double log_prob(Vector<double>& theta, Messages out) const override {
    return self().template log_prob<false, false>(theta, out);
  }
  double log_prob_jacobian(Vector<double>& theta, Messages out) const override {
    return self().template log_prob<false, JACOBIAN>(theta, out);
  }
  math::var log_prob_propto(Vector<math::var>& theta, Messages out) const override {
    return self().template log_prob<true, false>(theta, out);
  }
  math::var log_prob_propto_jacobian(Vector<math::var>& theta, Messages out) const override {
    return self().template log_prob<true, JACOBIAN>(theta, out);
  }

  double log_prob(Reals& theta, Integers&, Messages out) const override {
    Vector<double> values = copy(theta);
    return log_prob(values, out);
  }
  double log_prob_jacobian(Reals& theta, Integers&, Messages out) const override {
    Vector<double> values = copy(theta);
    return log_prob_jacobian(values, out);
  }
  math::var log_prob_propto(Vars& theta, Integers&, Messages out) const override {
    Vector<math::var> values = copy(theta);
    return log_prob_propto(values, out);
  }
  math::var log_prob_propto_jacobian(Vars& theta, Integers&, Messages out) const override {
    Vector<math::var> values = copy(theta);
    return log_prob_propto_jacobian(values, out);
  }

  math::var log_prob(Vector<math::var>&, Messages) const override { missing(); }
  math::var log_prob_jacobian(Vector<math::var>&, Messages) const override { missing(); }
  double log_prob_propto(Vector<double>&, Messages) const override { missing(); }
  double log_prob_propto_jacobian(Vector<double>&, Messages) const override { missing(); }
  math::var log_prob(Vars&, Integers&, Messages) const override { missing(); }
  math::var log_prob_jacobian(Vars&, Integers&, Messages) const override { missing(); }
  double log_prob_propto(Reals&, Integers&, Messages) const override { missing(); }
  double log_prob_propto_jacobian(Reals&, Integers&, Messages) const override { missing(); }

  void write_array(rng_t& rng, Vector<double>& theta, Vector<double>& out, bool transformed = true,
                   bool generated = true, Messages messages = nullptr) const override {
    self().write_array(rng, theta, out, transformed, generated, messages);
  }
  // The services write what was computed before an exception.
  void write_array(rng_t& rng, Reals& theta, Integers&, Reals& out, bool transformed = true, bool generated = true,
                   Messages messages = nullptr) const override {
    Vector<double> values = copy(theta), written;
    try {
      write_array(rng, values, written, transformed, generated, messages);
    } catch (...) {
      out.assign(written.data(), written.data() + written.size());
      throw;
    }
    out.assign(written.data(), written.data() + written.size());
  }

  void unconstrain_array(const Vector<double>& constrained, Vector<double>& theta,
                         Messages out = nullptr) const override {
    self().unconstrain_array(constrained, theta, out);
  }
  void unconstrain_array(const Reals& constrained, Reals& theta, Messages out = nullptr) const override {
    Vector<double> values;
    unconstrain_array(copy(constrained), values, out);
    theta.assign(values.data(), values.data() + values.size());
  }
  void transform_inits(const io::var_context& context, Vector<double>& theta, Messages out) const override {
    self().transform_inits(context, theta, out);
  }
};

}  // namespace model
}  // namespace stan

#include <stan/model/model_header.hpp>

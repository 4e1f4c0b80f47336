#pragma once
// The services include all of Stan Math but use little of it: parsing it takes three times as long as compiling them.
// This header defines the include guards of the umbrella headers and includes what the services of this Stan version use.
#define STAN_MATH_PRIM_HPP
#define STAN_MATH_REV_HPP
#define STAN_MATH_MIX_HPP
#define STAN_MATH_HPP

#include "tbb.hpp"

#include <stan/math/prim/core.hpp>
#include <stan/math/prim/err.hpp>
#include <stan/math/prim/fun/Eigen.hpp>
#include <stan/math/prim/fun/expm1.hpp>
#include <stan/math/prim/fun/log_sum_exp.hpp>
#include <stan/math/prim/fun/to_matrix.hpp>
#include <stan/math/prim/fun/variance.hpp>
#include <stan/math/prim/fun/welford_covar_estimator.hpp>
#include <stan/math/prim/fun/welford_var_estimator.hpp>
#include <stan/math/prim/meta.hpp>
#include <stan/math/prim/prob/std_normal_rng.hpp>
#include <stan/math/rev/core.hpp>
#include <stan/math/rev/fun/grad.hpp>
#include <stan/math/rev/functor/finite_diff_hessian_auto.hpp>
#include <stan/math/rev/functor/gradient.hpp>
#include <stan/math/rev/meta.hpp>

#include <boost/random/normal_distribution.hpp>
#include <boost/random/uniform_real_distribution.hpp>
#include <boost/random/variate_generator.hpp>

#include <iomanip>

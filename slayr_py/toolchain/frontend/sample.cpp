// NUTS with each metric, with or without adaptation, and the fixed-parameter sampler.
#include "run.hpp"

#include <stan/services/sample/fixed_param.hpp>
#include <stan/services/sample/hmc_nuts_dense_e.hpp>
#include <stan/services/sample/hmc_nuts_dense_e_adapt.hpp>
#include <stan/services/sample/hmc_nuts_diag_e.hpp>
#include <stan/services/sample/hmc_nuts_diag_e_adapt.hpp>
#include <stan/services/sample/hmc_nuts_unit_e.hpp>
#include <stan/services/sample/hmc_nuts_unit_e_adapt.hpp>
#include <stan/services/util/create_unit_e_dense_inv_metric.hpp>
#include <stan/services/util/create_unit_e_diag_inv_metric.hpp>

namespace frontend {
namespace {

namespace services = stan::services;

// Returns the context of the metric file for each chain, or the identity, which is the default of the services.
Contexts inverse_metrics(const Run& run, const std::string& path, bool dense) {
  if (!path.empty())
    return read_contexts(path, run.num_chains, run.id);
  const std::size_t size = run.model.num_params_r();
  using Context = stan::io::array_var_context;
  const auto identity = std::make_shared<Context>(dense ? services::util::create_unit_e_dense_inv_metric(size)
                                                        : services::util::create_unit_e_diag_inv_metric(size));
  return Contexts(run.num_chains, identity);
}

}  // namespace

int sample(Run& run) {
  const int num_warmup = run.integer("num_warmup");
  const int num_samples = run.integer("num_samples");
  const int thin = run.integer("thin");
  const bool save_warmup = run.boolean("save_warmup");
  const bool no_parameters = run.model.num_params_r() == 0;
  // cmdstanpy parses this message.
  if (no_parameters && !run.method["algorithm"].chose("fixed_param"))
    run.logger.info("The program has no parameters: running fixed_param sampler");
  if (no_parameters || run.method["algorithm"].chose("fixed_param"))
    return services::sample::fixed_param(run.model, run.num_chains, run.inits, run.seed, run.id, run.init_radius, num_samples,
                                         thin, run.refresh, run.interrupt, run.logger, run.init_writers, run.draws,
                                         run.diagnostics);

  const Argument& hmc = run.method["algorithm"]["hmc"];
  const double stepsize = hmc["stepsize"].as_real();
  const double jitter = hmc["stepsize_jitter"].as_real();
  const int max_depth = static_cast<int>(hmc["engine"]["nuts"]["max_depth"].as_integer());
  const std::string& metric = hmc["metric"].value;
  const std::string& metric_file = hmc["metric_file"].value;
  if (metric == "unit_e" && !metric_file.empty())
    throw UsageError("metric_file has no use with metric=unit_e: choose diag_e or dense_e");

  const Argument& adapt = run.method["adapt"];
  if (!adapt["engaged"].as_boolean()) {
    if (metric == "unit_e")
      return services::sample::hmc_nuts_unit_e(run.model, run.num_chains, run.inits, run.seed, run.id, run.init_radius,
                                               num_warmup, num_samples, thin, save_warmup, run.refresh, stepsize, jitter,
                                               max_depth, run.interrupt, run.logger, run.init_writers, run.draws,
                                               run.diagnostics);
    const Contexts metrics = inverse_metrics(run, metric_file, metric == "dense_e");
    if (metric == "dense_e")
      return services::sample::hmc_nuts_dense_e(run.model, run.num_chains, run.inits, metrics, run.seed, run.id,
                                                run.init_radius, num_warmup, num_samples, thin, save_warmup, run.refresh,
                                                stepsize, jitter, max_depth, run.interrupt, run.logger, run.init_writers,
                                                run.draws, run.diagnostics);
    return services::sample::hmc_nuts_diag_e(run.model, run.num_chains, run.inits, metrics, run.seed, run.id, run.init_radius,
                                             num_warmup, num_samples, thin, save_warmup, run.refresh, stepsize, jitter,
                                             max_depth, run.interrupt, run.logger, run.init_writers, run.draws,
                                             run.diagnostics);
  }

  if (num_warmup == 0)
    throw UsageError("num_warmup is 0, but adaptation needs warmup iterations: give num_warmup > 0, or adapt engaged=0");
  const double delta = adapt["delta"].as_real();
  const double gamma = adapt["gamma"].as_real();
  const double kappa = adapt["kappa"].as_real();
  const double t0 = adapt["t0"].as_real();
  const auto init_buffer = static_cast<unsigned int>(adapt["init_buffer"].as_integer());
  const auto term_buffer = static_cast<unsigned int>(adapt["term_buffer"].as_integer());
  const auto window = static_cast<unsigned int>(adapt["window"].as_integer());
  if (metric == "unit_e")
    return services::sample::hmc_nuts_unit_e_adapt(run.model, run.num_chains, run.inits, run.seed, run.id, run.init_radius,
                                                   num_warmup, num_samples, thin, save_warmup, run.refresh, stepsize, jitter,
                                                   max_depth, delta, gamma, kappa, t0, run.interrupt, run.logger,
                                                   run.init_writers, run.draws, run.diagnostics, run.no_json);
  const Contexts metrics = inverse_metrics(run, metric_file, metric == "dense_e");
  if (metric == "dense_e")
    return services::sample::hmc_nuts_dense_e_adapt(run.model, run.num_chains, run.inits, metrics, run.seed, run.id,
                                                    run.init_radius, num_warmup, num_samples, thin, save_warmup, run.refresh,
                                                    stepsize, jitter, max_depth, delta, gamma, kappa, t0, init_buffer,
                                                    term_buffer, window, run.interrupt, run.logger, run.init_writers, run.draws,
                                                    run.diagnostics, run.no_json);
  return services::sample::hmc_nuts_diag_e_adapt(run.model, run.num_chains, run.inits, metrics, run.seed, run.id,
                                                 run.init_radius, num_warmup, num_samples, thin, save_warmup, run.refresh,
                                                 stepsize, jitter, max_depth, delta, gamma, kappa, t0, init_buffer, term_buffer,
                                                 window, run.interrupt, run.logger, run.init_writers, run.draws,
                                                 run.diagnostics, run.no_json);
}

}  // namespace frontend

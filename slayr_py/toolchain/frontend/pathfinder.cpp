// Pathfinder with one path or several paths.
#include "run.hpp"

#include <stan/services/pathfinder/multi.hpp>
#include <stan/version.hpp>

#include <tuple>

namespace frontend {

namespace services = stan::services;
using Model = stan::model::model_base;

namespace {

template <typename... Arguments>
int single_path(Arguments&&... arguments) {
#if STAN_MINOR < 36
  // Multi-path Pathfinder uses the variant of this service that also returns draws, so only that one is compiled.
  return std::get<0>(services::pathfinder::pathfinder_lbfgs_single<true, Model>(arguments...));
#else
  return services::pathfinder::pathfinder_lbfgs_single<false, false, Model>(arguments...);
#endif
}

}  // namespace

int pathfinder(Run& run) {
  if (run.model.num_params_r() == 0)
    throw UsageError("The program has no parameters, so there is no path to find");
  const int num_draws = run.integer("num_draws");
  const int num_psis_draws = run.integer("num_psis_draws");
  const bool calculate_lp = run.boolean("calculate_lp");
  if (num_psis_draws > num_draws * static_cast<long long>(run.num_chains))
    run.logger.warn("Warning: num_psis_draws is larger than the number of draws of all paths together, so draws repeat.");
  if (run.num_chains == 1)
    return single_path(run.model, *run.inits[0], run.seed, run.id, run.init_radius, run.integer("history_size"),
                       run.real("init_alpha"), run.real("tol_obj"), run.real("tol_rel_obj"), run.real("tol_grad"),
                       run.real("tol_rel_grad"), run.real("tol_param"), run.integer("max_lbfgs_iters"),
                       run.integer("num_elbo_draws"), num_draws, false, run.refresh, run.interrupt, run.logger,
                       run.init_writers[0], run.draws[0], run.no_json[0], calculate_lp);
  JsonWriter no_diagnostics;
  return services::pathfinder::pathfinder_lbfgs_multi<Model>(
      run.model, run.inits, run.seed, run.id, run.init_radius, run.integer("history_size"), run.real("init_alpha"),
      run.real("tol_obj"), run.real("tol_rel_obj"), run.real("tol_grad"), run.real("tol_rel_grad"), run.real("tol_param"),
      run.integer("max_lbfgs_iters"), run.integer("num_elbo_draws"), num_draws, num_psis_draws,
      static_cast<int>(run.num_chains), false, run.refresh, run.interrupt, run.logger, run.init_writers, run.draws,
      run.no_json, *run.resampled, no_diagnostics, calculate_lp, run.boolean("psis_resample"));
}

}  // namespace frontend

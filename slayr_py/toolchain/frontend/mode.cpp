// The posterior mode and a normal approximation around it.
#include "run.hpp"
#include "stan_csv.hpp"

#include <stan/services/optimize/bfgs.hpp>
#include <stan/services/optimize/laplace_sample.hpp>
#include <stan/services/optimize/lbfgs.hpp>
#include <stan/services/optimize/newton.hpp>

#include <sstream>
#include <stdexcept>

namespace frontend {
namespace {

namespace services = stan::services;
using Model = stan::model::model_base;

template <bool jacobian>
int optimize_with(Run& run) {
  const int iterations = run.integer("iter");
  const bool save_iterations = run.boolean("save_iterations");
  const Argument& algorithm = run.method["algorithm"];
  if (algorithm.chose("newton"))
    return services::optimize::newton<Model, jacobian>(run.model, *run.inits[0], run.seed, run.id, run.init_radius, iterations,
                                                       save_iterations, run.interrupt, run.logger, run.init_writers[0],
                                                       run.draws[0]);
  const Argument& settings = algorithm.chosen();
  const auto real = [&settings](const char* name) { return settings[name].as_real(); };
  if (algorithm.chose("bfgs"))
    return services::optimize::bfgs<Model, jacobian>(run.model, *run.inits[0], run.seed, run.id, run.init_radius,
                                                     real("init_alpha"), real("tol_obj"), real("tol_rel_obj"), real("tol_grad"),
                                                     real("tol_rel_grad"), real("tol_param"), iterations, save_iterations,
                                                     run.refresh, run.interrupt, run.logger, run.init_writers[0], run.draws[0]);
  const int history = static_cast<int>(settings["history_size"].as_integer());
  return services::optimize::lbfgs<Model, jacobian>(run.model, *run.inits[0], run.seed, run.id, run.init_radius, history,
                                                    real("init_alpha"), real("tol_obj"), real("tol_rel_obj"), real("tol_grad"),
                                                    real("tol_rel_grad"), real("tol_param"), iterations, save_iterations,
                                                    run.refresh, run.interrupt, run.logger, run.init_writers[0], run.draws[0]);
}

Eigen::VectorXd unconstrained_mode(const Model& model, const std::string& path) {
  std::ostringstream messages;
  const std::string suffix = split_suffix(path).second;
  if (suffix == ".json") {
    Eigen::VectorXd mode;
    model.transform_inits(*read_contexts(path, 1, 1)[0], mode, &messages);
    return mode;
  }
  if (suffix != ".csv")
    throw UsageError("mode=" + path + ": the mode is a .csv file of optimize, or a .json file of parameters");
  const StanCsv csv = read_stan_csv(path);
  if (csv.setting("method", "") != "optimize")
    throw std::invalid_argument("mode=" + path + " was not written by method=optimize");
  if (csv.rows.empty())
    throw std::invalid_argument("mode=" + path + " holds no estimate");
  std::vector<std::string> names;
  model.constrained_param_names(names, false, false);
  const std::size_t first = csv.algorithm_columns();
  Eigen::VectorXd constrained(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (first + i >= csv.header.size() || csv.header[first + i] != names[i])
      throw std::invalid_argument("mode=" + path + " is of another program: its column " + std::to_string(first + i + 1)
                                  + " is not \"" + names[i] + "\"");
    constrained[i] = csv.rows.back()[first + i];
  }
  Eigen::VectorXd mode;
  model.unconstrain_array(constrained, mode, &messages);
  return mode;
}

}  // namespace

int optimize(Run& run) { return run.boolean("jacobian") ? optimize_with<true>(run) : optimize_with<false>(run); }

int laplace(Run& run) {
  const std::string& path = run.text("mode");
  if (path.empty())
    throw UsageError("method=laplace needs the mode to expand around: mode=<.csv file of optimize, or .json file>");
  const Eigen::VectorXd mode = unconstrained_mode(run.model, path);
  const int draws = run.integer("draws");
  const bool calculate_lp = run.boolean("calculate_lp");
  if (run.boolean("jacobian"))
    return services::laplace_sample<true>(run.model, mode, draws, calculate_lp, run.seed, run.refresh, run.interrupt,
                                          run.logger, run.draws[0], run.no_json[0]);
  return services::laplace_sample<false>(run.model, mode, draws, calculate_lp, run.seed, run.refresh, run.interrupt, run.logger,
                                         run.draws[0], run.no_json[0]);
}

}  // namespace frontend

// Methods that evaluate the model at given parameters: generated quantities, log density, gradient test.
#include "run.hpp"
#include "stan_csv.hpp"

#include <stan/model/log_prob_grad.hpp>
#include <stan/services/diagnose/diagnose.hpp>
#include <stan/services/sample/standalone_gqs.hpp>

#include <sstream>
#include <stdexcept>

namespace frontend {
namespace {

using Model = stan::model::model_base;

std::vector<std::string> parameter_names(const Model& model) {
  std::vector<std::string> names;
  model.constrained_param_names(names, false, false);
  if (names.empty())
    throw UsageError("The program has no parameters, so there are no draws to read");
  return names;
}

// Rows of the parameters' columns, in the order of declaration in the program.
Eigen::MatrixXd read_parameters(const std::string& path, const Model& model) {
  const std::vector<std::string> names = parameter_names(model);
  const StanCsv csv = read_stan_csv(path);
  const std::size_t first = csv.algorithm_columns();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (first + i >= csv.header.size() || csv.header[first + i] != names[i])
      throw std::invalid_argument("\"" + path + "\" is of another program: its column " + std::to_string(first + i + 1)
                                  + " is not \"" + names[i] + "\"");
  Eigen::MatrixXd parameters(csv.rows.size(), names.size());
  for (std::size_t row = 0; row < csv.rows.size(); ++row)
    for (std::size_t column = 0; column < names.size(); ++column)
      parameters(row, column) = csv.rows[row][first + column];
  return parameters;
}

std::vector<Eigen::VectorXd> read_constrained(const std::string& path, const Model& model) {
  std::ostringstream messages;
  if (split_suffix(path).second != ".csv") {
    Eigen::VectorXd point;
    model.transform_inits(*read_contexts(path, 1, 1)[0], point, &messages);
    return {point};
  }
  const Eigen::MatrixXd parameters = read_parameters(path, model);
  std::vector<Eigen::VectorXd> points(parameters.rows());
  for (Eigen::Index row = 0; row < parameters.rows(); ++row)
    model.unconstrain_array(parameters.row(row), points[row], &messages);
  return points;
}

template <bool jacobian>
void write_gradients(const Model& model, std::vector<Eigen::VectorXd>& points, CsvWriter& out) {
  for (Eigen::VectorXd& point : points) {
    Eigen::VectorXd gradient;
    const double log_density = stan::model::log_prob_grad<true, jacobian>(model, point, gradient);
    std::vector<double> row{log_density};
    row.insert(row.end(), gradient.data(), gradient.data() + gradient.size());
    out(row);
  }
}

}  // namespace

int generate_quantities(Run& run) {
  const std::string& path = run.text("fitted_params");
  if (path.empty())
    throw UsageError("method=generate_quantities needs draws: fitted_params=<Stan CSV file>");
  const auto [base, suffix] = split_suffix(path);
  std::vector<Eigen::MatrixXd> draws;
  for (const std::string& name : numbered(base, suffix, run.num_chains, run.id))
    draws.push_back(read_parameters(name, run.model));
  return stan::services::standalone_generate(run.model, static_cast<int>(run.num_chains), draws, run.seed, run.interrupt,
                                             run.logger, run.draws);
}

int log_prob(Run& run) {
  const std::string& path = run.text("constrained_params");
  if (path.empty())
    throw UsageError("method=log_prob needs constrained_params=<file>");
  std::vector<Eigen::VectorXd> points = read_constrained(path, run.model);
  std::vector<std::string> header;
  run.model.unconstrained_param_names(header, false, false);
  for (std::string& name : header)
    name = "g_" + name;
  header.insert(header.begin(), "lp__");
  run.draws[0](header);
  if (run.boolean("jacobian"))
    write_gradients<true>(run.model, points, run.draws[0]);
  else
    write_gradients<false>(run.model, points, run.draws[0]);
  return 0;
}

int diagnose(Run& run) {
  const Argument& gradient = run.method["test"]["gradient"];
  return stan::services::diagnose::diagnose(run.model, *run.inits[0], run.seed, run.id, run.init_radius,
                                            gradient["epsilon"].as_real(), gradient["error"].as_real(), run.interrupt,
                                            run.logger, run.init_writers[0], run.draws[0]);
}

}  // namespace frontend

#include "arguments.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <ostream>

namespace frontend {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Six digits as in CmdStan, or as many as the number needs to be exact.
std::string printed(double number) {
  char text[32];
  for (int digits = 6; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, number);
    if (std::strtod(text, nullptr) == number)
      break;
  }
  return text;
}

const Range anything{-infinity, infinity, true, true, "any"};
const Range positive{0, infinity, false, false, "> 0"};
const Range not_negative{0, infinity, true, false, ">= 0"};
const Range unit_open{0, 1, false, false, "between 0 and 1, both excluded"};
const Range unit_closed{0, 1, true, true, "between 0 and 1"};
const Range seeds{-1, 4294967295.0, true, true, "0 to 4294967295, or -1 for the clock"};
const Range digits{-1, 18, true, true, "1 to 18, or -1 for the stream's default"};
const Range threads_range{-1, infinity, true, false, "> 0, or -1 for every core"};

Argument leaf(Kind kind, std::string name, std::string fallback, Range range, std::string help) {
  return {kind, std::move(name), std::move(help), fallback, std::move(range), {}, fallback};
}
Argument integer(std::string name, long long fallback, Range range, std::string help) {
  return leaf(Kind::integer, std::move(name), std::to_string(fallback), std::move(range), std::move(help));
}
Argument real(std::string name, double fallback, Range range, std::string help) {
  return leaf(Kind::real, std::move(name), printed(fallback), std::move(range), std::move(help));
}
Argument boolean(std::string name, bool fallback, std::string help) {
  return leaf(Kind::boolean, std::move(name), fallback ? "true" : "false", anything, std::move(help));
}
Argument text(std::string name, std::string fallback, std::string help) {
  return leaf(Kind::text, std::move(name), std::move(fallback), anything, std::move(help));
}
Argument group(std::string name, std::string help, std::vector<Argument> children) {
  return {Kind::group, std::move(name), std::move(help), "", anything, std::move(children), ""};
}
Argument choice(std::string name, std::string fallback, std::string help, std::vector<Argument> alternatives) {
  return {Kind::choice, std::move(name), std::move(help), fallback, anything, std::move(alternatives), fallback};
}
Argument word(std::string name, std::string help) { return leaf(Kind::word, std::move(name), "", anything, std::move(help)); }
Argument refused(std::string name, std::string why) {
  return leaf(Kind::refused, std::move(name), "", anything, std::move(why));
}

std::vector<Argument> bfgs_tolerances() {
  return {
      real("init_alpha", 0.001, positive, "First step of the line search"),
      real("tol_obj", 1e-12, not_negative, "Converged when the objective changes by less"),
      real("tol_rel_obj", 1e4, not_negative, "Converged when the objective's relative change, in units of rounding, is less"),
      real("tol_grad", 1e-8, not_negative, "Converged when the gradient's norm is less"),
      real("tol_rel_grad", 1e7, not_negative, "Converged when the gradient's relative norm, in units of rounding, is less"),
      real("tol_param", 1e-8, not_negative, "Converged when the parameters move by less"),
  };
}

std::vector<Argument> lbfgs_settings() {
  std::vector<Argument> settings = bfgs_tolerances();
  settings.push_back(integer("history_size", 5, positive, "Past updates that approximate the Hessian"));
  return settings;
}

Argument sample_table() {
  return group("sample", "Markov chain Monte Carlo with the No-U-Turn sampler", {
      integer("num_samples", 1000, not_negative, "Iterations after warmup"),
      integer("num_warmup", 1000, not_negative, "Warmup iterations"),
      boolean("save_warmup", false, "Write the warmup iterations too"),
      integer("thin", 1, positive, "Write one iteration in this many"),
      group("adapt", "Adaptation during warmup", {
          boolean("engaged", true, "Adapt the step size and the metric"),
          real("gamma", 0.05, positive, "Regularisation scale of dual averaging"),
          real("delta", 0.8, unit_open, "Target acceptance statistic"),
          real("kappa", 0.75, positive, "Relaxation exponent of dual averaging"),
          real("t0", 10, positive, "Iterations that dual averaging discounts at the start"),
          integer("init_buffer", 75, not_negative, "Length of the fast interval at the start"),
          integer("term_buffer", 50, not_negative, "Length of the fast interval at the end"),
          integer("window", 25, not_negative, "Length of the first slow interval"),
          boolean("save_metric", false, "Write step size and inverse metric as JSON, in full precision"),
      }),
      choice("algorithm", "hmc", "Sampling algorithm", {
          group("hmc", "Hamiltonian Monte Carlo", {
              choice("engine", "nuts", "How a trajectory ends", {
                  refused("static", "static HMC is not built in: it would double the time this program takes to compile. "
                                    "Use engine=nuts, or install CmdStan and set CMDSTAN"),
                  group("nuts", "The No-U-Turn sampler", {
                      integer("max_depth", 10, positive, "Deepest tree of leapfrog steps"),
                  }),
              }),
              choice("metric", "diag_e", "Geometry of the Euclidean metric", {
                  word("unit_e", "The identity"),
                  word("diag_e", "A diagonal"),
                  word("dense_e", "A full matrix"),
              }),
              text("metric_file", "", "JSON file with the inverse metric `inv_metric` to start from"),
              real("stepsize", 1, positive, "Leapfrog step size to start from"),
              real("stepsize_jitter", 0, unit_closed, "Uniform random part of the step size, as a fraction"),
          }),
          word("fixed_param", "Parameters stay where they are; only generated quantities are drawn"),
      }),
      integer("num_chains", 1, positive, "Chains in this process, on num_threads threads"),
  });
}

Argument optimize_table() {
  return group("optimize", "Posterior mode, or penalised maximum likelihood", {
      choice("algorithm", "lbfgs", "Optimisation algorithm", {
          group("bfgs", "BFGS with line search", bfgs_tolerances()),
          group("lbfgs", "L-BFGS with line search", lbfgs_settings()),
          group("newton", "Newton's method", {}),
      }),
      boolean("jacobian", false, "Add the log Jacobian of the constraints: the mode on the unconstrained scale"),
      integer("iter", 2000, positive, "Most iterations"),
      boolean("save_iterations", false, "Write every iteration"),
  });
}

Argument pathfinder_table() {
  std::vector<Argument> settings = lbfgs_settings();
  settings.insert(settings.end(), {
      integer("num_psis_draws", 1000, positive, "Draws kept by Pareto smoothed importance resampling"),
      integer("num_paths", 4, positive, "Single-path runs"),
      boolean("save_single_paths", false, "Write each path's draws and iterations"),
      boolean("psis_resample", true, "Resample the paths' draws by importance; if not, write all of them"),
      boolean("calculate_lp", true, "Evaluate the log density of every draw; if not, draws are not resampled"),
      integer("max_lbfgs_iters", 1000, positive, "Most L-BFGS iterations of a path"),
      integer("num_draws", 1000, positive, "Draws of a path"),
      integer("num_elbo_draws", 25, positive, "Draws that estimate the evidence lower bound"),
  });
  return group("pathfinder", "Variational approximation along optimisation paths", std::move(settings));
}

Argument method_table() {
  return choice("method", "sample", "What to do with the model; the word method= may be left out", {
      sample_table(),
      optimize_table(),
      refused("variational", "variational inference (ADVI) is not built in: it would double the time this program takes "
                             "to compile. Use method=pathfinder, or install CmdStan and set CMDSTAN"),
      group("diagnose", "Compare gradients with finite differences", {
          choice("test", "gradient", "Which test", {
              group("gradient", "Automatic against finite-difference gradient", {
                  real("epsilon", 1e-6, positive, "Step of the finite difference"),
                  real("error", 1e-6, positive, "Largest difference that passes"),
              }),
          }),
      }),
      group("generate_quantities", "Generated quantities of draws that exist already", {
          text("fitted_params", "", "Stan CSV file with the draws"),
          integer("num_chains", 1, positive, "Chains, read from files numbered from id"),
      }),
      pathfinder_table(),
      group("log_prob", "Log density and gradient at given parameters", {
          text("unconstrained_params", "", "JSON file with `params_r`, one vector or an array of them"),
          text("constrained_params", "", "JSON or Stan CSV file with parameters as the program declares them"),
          boolean("jacobian", true, "Add the log Jacobian of the constraints"),
      }),
      group("laplace", "Normal approximation around a mode", {
          text("mode", "", "The mode: Stan CSV of optimize, or JSON"),
          boolean("jacobian", true, "Add the log Jacobian of the constraints"),
          integer("draws", 1000, positive, "Draws from the approximation"),
          boolean("calculate_lp", true, "Evaluate the log density of every draw"),
      }),
  });
}

int edit_distance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

struct Suggestion {
  int distance = std::numeric_limits<int>::max();
  std::vector<std::string> paths;
};

// Collects every argument in the tree whose name is nearest to `name`.
void nearest(const Argument& at, const std::string& prefix, const std::string& name, Suggestion& best) {
  for (const Argument& child : at.children) {
    if (child.kind == Kind::refused)
      continue;
    const bool alternative = at.kind == Kind::choice;
    const std::string here = alternative ? prefix + child.name : prefix + (prefix.empty() ? "" : " ") + child.name;
    const bool valued = child.kind != Kind::group && child.kind != Kind::word;
    const int distance = edit_distance(name, child.name);
    if (distance < best.distance)
      best = {distance, {}};
    if (distance == best.distance)
      best.paths.push_back(here + (valued ? "=" : ""));
    nearest(child, child.kind == Kind::choice ? here + "=" : here, name, best);
  }
}

[[noreturn]] void unknown(const Argument& root, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  Suggestion best;
  nearest(root, "", name, best);
  std::string message = "\"" + word + "\" is " + (best.distance == 0 ? "misplaced" : "not an argument");
  if (best.distance <= 1 + static_cast<int>(name.size()) / 3) {
    message += best.paths.size() == 1 ? ". Did you mean\n" : ". Did you mean one of\n";
    for (const std::string& path : best.paths)
      message += "  " + path + "\n";
    message.pop_back();
  }
  throw UsageError(message + "\nThe word help, or help-all, lists what is valid.");
}

std::string valid_values(const Argument& argument) {
  if (argument.kind == Kind::boolean)
    return "true, false, 1 or 0";
  if (argument.kind != Kind::choice)
    return argument.range.in_words;
  std::string names;
  for (const Argument& alternative : argument.children)
    if (alternative.kind != Kind::refused)
      names += (names.empty() ? "" : ", ") + alternative.name;
  return names;
}

[[noreturn]] void invalid(const Argument& argument, const std::string& value) {
  throw UsageError("\"" + value + "\" is not a valid value for \"" + argument.name + "\"; valid: " + valid_values(argument));
}

bool inside(const Range& range, double value) {
  return (range.low_included ? value >= range.low : value > range.low)
         && (range.high_included ? value <= range.high : value < range.high);
}

void assign(Argument& argument, const std::string& value) {
  argument.given = true;
  char* end = nullptr;
  errno = 0;
  switch (argument.kind) {
    case Kind::integer: {
      const long long number = std::strtoll(value.c_str(), &end, 10);
      if (value.empty() || *end != '\0' || errno != 0 || !inside(argument.range, static_cast<double>(number))
          || (argument.name != "seed" && number > std::numeric_limits<int>::max()))
        invalid(argument, value);
      argument.value = std::to_string(number);
      return;
    }
    case Kind::real: {
      const double number = std::strtod(value.c_str(), &end);
      if (value.empty() || *end != '\0' || !std::isfinite(number) || !inside(argument.range, number))
        invalid(argument, value);
      argument.value = printed(number);
      return;
    }
    case Kind::boolean:
      if (value == "1" || value == "true")
        argument.value = "true";
      else if (value == "0" || value == "false")
        argument.value = "false";
      else
        invalid(argument, value);
      return;
    case Kind::choice:
      for (const Argument& alternative : argument.children) {
        if (alternative.name != value)
          continue;
        if (alternative.kind == Kind::refused)
          throw UsageError(argument.name + "=" + value + ": " + alternative.help + ".");
        argument.value = value;
        return;
      }
      invalid(argument, value);
    default:
      argument.value = value;
  }
}

void explain(const Argument& argument, int depth, bool whole_tree, std::ostream& out) {
  if (argument.kind == Kind::refused)
    return;
  const std::string indent(2 * depth, ' ');
  out << indent << argument.name;
  if (argument.kind != Kind::group && argument.kind != Kind::word) {
    out << "=<" << valid_values(argument) << ">\n";
    out << indent << "  " << argument.help << " (default: " << (argument.fallback.empty() ? "none" : argument.fallback) << ")\n";
  } else {
    out << "\n" << indent << "  " << argument.help << "\n";
  }
  if (whole_tree || depth == 0)
    for (const Argument& child : argument.children)
      explain(child, depth + 1, whole_tree, out);
}

void usage(const Argument& root, const std::string& program, bool whole_tree, std::ostream& out) {
  out << "Usage: " << program << " <method> <subargument>=<value> ... <argument> <subargument>=<value> ...\n\n"
      << "Methods:\n";
  for (const Argument& method : root["method"].children) {
    if (whole_tree)
      explain(method, 1, true, out);
    else if (method.kind != Kind::refused)
      out << "  " << method.name << std::string(22 - method.name.size(), ' ') << method.help << "\n";
  }
  out << "\nArguments of every method:\n";
  for (const Argument& argument : root.children) {
    if (argument.name == "method")
      continue;
    if (whole_tree)
      explain(argument, 1, true, out);
    else
      out << "  " << argument.name << std::string(22 - argument.name.size(), ' ') << argument.help << "\n";
  }
  out << "\nMore: " << program << " help-all, " << program << " <method> help, " << program << " info\n";
}

Argument* find_child(Argument& parent, const std::string& name) {
  for (Argument& child : parent.children)
    if (child.name == name)
      return &child;
  return nullptr;
}

}  // namespace

const Argument& Argument::operator[](const std::string& child) const {
  for (const Argument& candidate : children)
    if (candidate.name == child)
      return candidate;
  throw std::logic_error("the argument table has no \"" + child + "\" in \"" + name + "\"");
}

Argument& Argument::operator[](const std::string& child) {
  return const_cast<Argument&>(static_cast<const Argument&>(*this)[child]);
}

long long Argument::as_integer() const { return std::strtoll(value.c_str(), nullptr, 10); }
double Argument::as_real() const { return std::strtod(value.c_str(), nullptr); }

Argument argument_table(int threads) {
  return group("", "", {
      method_table(),
      integer("id", 1, not_negative, "Number of the first chain: selects the stream of random numbers"),
      group("data", "Input data", {text("file", "", "JSON file with the data")}),
      text("init", "2", "Initial values: a JSON file, or the radius of the uniform random start, 0 for zeros"),
      group("random", "Random numbers", {integer("seed", -1, seeds, "Seed of the generator")}),
      group("output", "Output files", {
          text("file", "output.csv", "Draws or estimates, as Stan CSV"),
          text("diagnostic_file", "", "Unconstrained parameters, momenta and gradients, as Stan CSV or JSON"),
          integer("refresh", 100, not_negative, "Iterations between progress messages, 0 for none"),
          integer("sig_figs", -1, digits, "Significant digits of numbers in files"),
          text("profile_file", "profile.csv", "Times of the program's profile blocks"),
          boolean("save_cmdstan_config", false, "Write all arguments as JSON beside the output"),
      }),
      integer("num_threads", threads, threads_range, "Threads of this process"),
  });
}

bool parse(Argument& root, const std::vector<std::string>& words, const std::string& program, std::ostream& out) {
  // Open groups, innermost last. A word belongs to the innermost group that has an argument of its name.
  std::vector<Argument*> open{&root};
  for (const std::string& word : words) {
    if (word == "help" || word == "help-all") {
      if (open.size() == 1)
        usage(root, program, word == "help-all", out);
      else
        explain(*open.back(), 0, word == "help-all", out);
      return false;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    Argument* argument = nullptr;
    std::size_t level = open.size();
    while (level > 0 && argument == nullptr)
      argument = find_child(*open[--level], name);
    if (argument == nullptr && equals == std::string::npos && find_child(root["method"], word) != nullptr) {
      assign(root["method"], word);
      open = {&root, find_child(root["method"], word)};
      continue;
    }
    if (argument == nullptr || (argument->kind == Kind::group) != (equals == std::string::npos))
      unknown(root, word);
    open.resize(level + 1);
    if (argument->kind == Kind::group) {
      open.push_back(argument);
    } else {
      assign(*argument, word.substr(equals + 1));
      if (argument->kind == Kind::choice)
        open.push_back(find_child(*argument, argument->value));
    }
  }
  if (!root["method"].given) {
    usage(root, program, false, out);
    throw UsageError("A method must be specified, for example: " + program + " sample data file=data.json");
  }
  Argument& seed = root["random"]["seed"];
  if (seed.as_integer() == -1) {
    const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
    seed.value = seed.fallback = std::to_string(static_cast<unsigned int>(milliseconds));
  }
  return true;
}

}  // namespace frontend

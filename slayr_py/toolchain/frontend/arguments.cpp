#include "arguments.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

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

Argument leaf(Kind kind, std::string name, std::string fallback, Range range) {
  return {kind, std::move(name), fallback, std::move(range), {}, fallback};
}
Argument integer(std::string name, long long fallback, Range range) {
  return leaf(Kind::integer, std::move(name), std::to_string(fallback), std::move(range));
}
Argument real(std::string name, double fallback, Range range) {
  return leaf(Kind::real, std::move(name), printed(fallback), std::move(range));
}
Argument boolean(std::string name, bool fallback) {
  return leaf(Kind::boolean, std::move(name), fallback ? "true" : "false", anything);
}
Argument text(std::string name, std::string fallback) {
  return leaf(Kind::text, std::move(name), std::move(fallback), anything);
}
Argument fixed(std::string name, std::string value) {
  return leaf(Kind::fixed, std::move(name), std::move(value), anything);
}
Argument group(std::string name, std::vector<Argument> children) {
  return {Kind::group, std::move(name), "", anything, std::move(children), ""};
}
Argument choice(std::string name, std::string fallback, std::vector<Argument> alternatives) {
  return {Kind::choice, std::move(name), fallback, anything, std::move(alternatives), fallback};
}
Argument word(std::string name) { return leaf(Kind::word, std::move(name), "", anything); }
// The reason is kept as the value.
Argument refused(std::string name, std::string why) { return leaf(Kind::refused, std::move(name), std::move(why), anything); }

std::vector<Argument> bfgs_tolerances() {
  return {
      real("init_alpha", 0.001, positive),
      real("tol_obj", 1e-12, not_negative),
      real("tol_rel_obj", 1e4, not_negative),
      real("tol_grad", 1e-8, not_negative),
      real("tol_rel_grad", 1e7, not_negative),
      real("tol_param", 1e-8, not_negative),
  };
}

std::vector<Argument> lbfgs_settings() {
  std::vector<Argument> settings = bfgs_tolerances();
  settings.push_back(integer("history_size", 5, positive));
  return settings;
}

Argument sample_table() {
  return group("sample", {
      integer("num_samples", 1000, not_negative),
      integer("num_warmup", 1000, not_negative),
      boolean("save_warmup", false),
      integer("thin", 1, positive),
      group("adapt", {
          boolean("engaged", true),
          real("gamma", 0.05, positive),
          real("delta", 0.8, unit_open),
          real("kappa", 0.75, positive),
          real("t0", 10, positive),
          integer("init_buffer", 75, not_negative),
          integer("term_buffer", 50, not_negative),
          integer("window", 25, not_negative),
          fixed("save_metric", "false"),
      }),
      choice("algorithm", "hmc", {
          group("hmc", {
              choice("engine", "nuts", {
                  group("nuts", {
                      integer("max_depth", 10, positive),
                  }),
              }),
              choice("metric", "diag_e", {
                  word("unit_e"),
                  word("diag_e"),
                  word("dense_e"),
              }),
              text("metric_file", ""),
              real("stepsize", 1, positive),
              real("stepsize_jitter", 0, unit_closed),
          }),
          word("fixed_param"),
      }),
      integer("num_chains", 1, positive),
  });
}

Argument optimize_table() {
  return group("optimize", {
      choice("algorithm", "lbfgs", {
          group("bfgs", bfgs_tolerances()),
          group("lbfgs", lbfgs_settings()),
          group("newton", {}),
      }),
      boolean("jacobian", false),
      integer("iter", 2000, positive),
      boolean("save_iterations", false),
  });
}

Argument pathfinder_table() {
  std::vector<Argument> settings = lbfgs_settings();
  settings.insert(settings.end(), {
      integer("num_psis_draws", 1000, positive),
      integer("num_paths", 4, positive),
      fixed("save_single_paths", "false"),
      boolean("psis_resample", true),
      boolean("calculate_lp", true),
      integer("max_lbfgs_iters", 1000, positive),
      integer("num_draws", 1000, positive),
      integer("num_elbo_draws", 25, positive),
  });
  return group("pathfinder", std::move(settings));
}

Argument method_table() {
  return choice("method", "sample", {
      sample_table(),
      optimize_table(),
      refused("variational", "variational inference (ADVI) is not built in: it would double the time this program takes "
                             "to compile. Use method=pathfinder, or install CmdStan and set CMDSTAN"),
      group("diagnose", {
          choice("test", "gradient", {
              group("gradient", {
                  real("epsilon", 1e-6, positive),
                  real("error", 1e-6, positive),
              }),
          }),
      }),
      group("generate_quantities", {
          text("fitted_params", ""),
          integer("num_chains", 1, positive),
      }),
      pathfinder_table(),
      group("log_prob", {
          fixed("unconstrained_params", ""),
          text("constrained_params", ""),
          boolean("jacobian", true),
      }),
      group("laplace", {
          text("mode", ""),
          boolean("jacobian", true),
          integer("draws", 1000, positive),
          boolean("calculate_lp", true),
      }),
  });
}

std::string names_of(const Argument& parent) {
  std::string names;
  for (const Argument& child : parent.children)
    if (child.kind != Kind::refused)
      names += (names.empty() ? "" : ", ") + child.name;
  return names;
}

std::string valid_values(const Argument& argument) {
  if (argument.kind == Kind::boolean)
    return "true, false, 1 or 0";
  return argument.kind == Kind::choice ? names_of(argument) : argument.range.in_words;
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
          throw UsageError(argument.name + "=" + value + ": " + alternative.value + ".");
        argument.value = value;
        return;
      }
      invalid(argument, value);
    case Kind::fixed:
      throw UsageError(argument.name + "=" + value + " is not built in. Leave it out, or install CmdStan and set CMDSTAN");
    default:
      argument.value = value;
  }
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
  return group("", {
      method_table(),
      integer("id", 1, not_negative),
      group("data", {text("file", "")}),
      text("init", "2"),
      group("random", {integer("seed", -1, seeds)}),
      group("output", {
          text("file", "output.csv"),
          text("diagnostic_file", ""),
          integer("refresh", 100, not_negative),
          integer("sig_figs", -1, digits),
          text("profile_file", "profile.csv"),
          fixed("save_cmdstan_config", "false"),
      }),
      integer("num_threads", threads, threads_range),
  });
}

void parse(Argument& root, const std::vector<std::string>& words) {
  // Open groups, innermost last. A word belongs to the innermost group that has an argument of its name.
  std::vector<Argument*> open{&root};
  for (const std::string& word : words) {
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
      throw UsageError("\"" + word + "\" is not an argument here; valid: " + names_of(*open.back()));
    open.resize(level + 1);
    if (argument->kind == Kind::group) {
      open.push_back(argument);
    } else {
      assign(*argument, word.substr(equals + 1));
      if (argument->kind == Kind::choice)
        open.push_back(find_child(*argument, argument->value));
    }
  }
  if (!root["method"].given)
    throw UsageError("A method must be specified, for example: sample data file=data.json");
  Argument& seed = root["random"]["seed"];
  if (seed.as_integer() == -1) {
    const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
    seed.value = seed.fallback = std::to_string(static_cast<unsigned int>(milliseconds));
  }
}

}  // namespace frontend

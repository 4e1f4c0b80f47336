#pragma once
// Draws of the chains of one run, and the statistics that stansummary and diagnose report.
#include "stan_csv.hpp"

#include <string>
#include <vector>

namespace frontend {

using Draws = std::vector<std::vector<double>>;  // for each chain, its draws of one quantity

struct Chains {
  std::vector<StanCsv> files;
  std::vector<std::size_t> saved_warmup;  // rows at the start of each file that belong to warmup

  const std::vector<std::string>& names() const { return files[0].header; }
  Draws draws(std::size_t column) const;
  std::size_t num_draws() const;
};

// Reads the files of one run; throws std::invalid_argument if one has no draws or other columns than the first.
Chains read_chains(const std::vector<std::string>& paths);

// theta.1.2 -> theta[1,2]
std::string with_brackets(const std::string& name);

double mean(const Draws& draws);
double standard_deviation(const Draws& draws);
// Sample quantiles as CmdStan defines them: order statistic ceil(n p) for p below 1/2, ceil from the top above.
std::vector<double> quantiles(const Draws& draws, const std::vector<double>& probabilities);
// Effective sample size of the chains by Geyer's initial monotone sequence (Stan reference manual, section on ESS).
double effective_sample_size(const Draws& draws);
// Splits each chain into halves.
Draws split(const Draws& draws);
// Potential scale reduction of Gelman and Rubin.
double potential_scale_reduction(const Draws& draws);

}  // namespace frontend

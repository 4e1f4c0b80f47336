// Checks the Stan CSV files of a run for signs that the draws are unreliable.
#include "chains.hpp"

#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace {

using namespace frontend;

// Thresholds of CmdStan.
constexpr double smallest_energy_fraction = 0.3;
constexpr double smallest_effective_fraction = 0.001;
constexpr double largest_scale_reduction = 1.05;

std::size_t column_of(const Chains& chains, const std::string& name) {
  const auto& names = chains.names();
  std::size_t column = 0;
  while (column < names.size() && names[column] != name)
    ++column;
  return column;
}

std::string share(std::size_t part, std::size_t whole) {
  std::ostringstream text;
  text << part << " of " << whole << " (" << std::fixed << std::setprecision(2)
       << 100 * static_cast<double>(part) / static_cast<double>(whole) << "%)";
  return text.str();
}

bool check_treedepth(const Chains& chains) {
  const std::size_t column = column_of(chains, "treedepth__");
  if (column == chains.names().size())
    return true;
  std::cout << "Checking sampler transitions treedepth.\n";
  const double limit = std::stod(chains.files[0].setting("max_depth", "10"));
  std::size_t hits = 0;
  for (const auto& chain : chains.draws(column))
    for (double depth : chain)
      hits += depth >= limit;
  if (hits == 0) {
    std::cout << "Treedepth satisfactory for all transitions.\n\n";
    return true;
  }
  std::cout << share(hits, chains.num_draws()) << " transitions hit the maximum treedepth limit of " << limit
            << ", or 2^" << limit << " leapfrog steps.\n"
            << "Trajectories cut short explore slowly: allow a deeper tree, or help the geometry with another "
               "parameterization.\n\n";
  return false;
}

bool check_divergences(const Chains& chains) {
  const std::size_t column = column_of(chains, "divergent__");
  if (column == chains.names().size())
    return true;
  std::cout << "Checking sampler transitions for divergences.\n";
  std::size_t divergent = 0;
  for (const auto& chain : chains.draws(column))
    for (double flag : chain)
      divergent += flag != 0;
  if (divergent == 0) {
    std::cout << "No divergent transitions found.\n\n";
    return true;
  }
  std::cout << share(divergent, chains.num_draws()) << " transitions ended with a divergence.\n"
            << "HMC did not reach all of the posterior there. Raise adapt delta towards 1; if divergences stay, "
               "reparameterize the model.\n\n";
  return false;
}

// E-BFMI of a chain: mean squared step of the energy over its variance (Betancourt 2016).
bool check_energy(const Chains& chains) {
  const std::size_t column = column_of(chains, "energy__");
  if (column == chains.names().size())
    return true;
  std::cout << "Checking E-BFMI - sampler transitions HMC potential energy.\n";
  bool good = true;
  std::size_t number = 0;
  for (const auto& chain : chains.draws(column)) {
    ++number;
    double steps = 0;
    for (std::size_t t = 1; t < chain.size(); ++t)
      steps += (chain[t] - chain[t - 1]) * (chain[t] - chain[t - 1]);
    const double deviation = standard_deviation({chain});
    const double fraction = steps / (deviation * deviation * static_cast<double>(chain.size() - 1));
    if (fraction >= smallest_energy_fraction || !(fraction == fraction))
      continue;
    std::cout << "Chain " << number << ": E-BFMI = " << std::setprecision(3) << fraction << "\n";
    good = false;
  }
  if (good)
    std::cout << "E-BFMI satisfactory.\n\n";
  else
    std::cout << "The E-BFMI of these chains is below the nominal threshold of " << smallest_energy_fraction
              << ": HMC may not have reached all of the target. Consider another parameterization.\n\n";
  return good;
}

void list(const std::vector<std::string>& names) {
  std::cout << "  ";
  for (std::size_t i = 0; i < names.size(); ++i)
    std::cout << (i == 0 ? "" : ", ") << names[i];
  std::cout << "\n";
}

bool check_parameters(const Chains& chains) {
  std::vector<std::string> few, apart;
  for (std::size_t column = chains.files[0].algorithm_columns(); column < chains.names().size(); ++column) {
    const Draws draws = chains.draws(column);
    if (effective_sample_size(draws) < smallest_effective_fraction * static_cast<double>(chains.num_draws()))
      few.push_back(with_brackets(chains.names()[column]));
    if (potential_scale_reduction(split(draws)) > largest_scale_reduction)
      apart.push_back(with_brackets(chains.names()[column]));
  }
  if (few.empty()) {
    std::cout << "Effective sample size satisfactory.\n\n";
  } else {
    std::cout << "The following parameters had fewer than " << smallest_effective_fraction
              << " effective draws per transition:\n";
    list(few);
    std::cout << "At so few, the estimate itself may be too high.\n\n";
  }
  if (apart.empty()) {
    std::cout << "Split R-hat values satisfactory all parameters.\n\n";
  } else {
    std::cout << "The following parameters had split R-hat greater than " << largest_scale_reduction << ":\n";
    list(apart);
    std::cout << "The chains have not mixed, and estimates are biased. Run longer, give more informative priors, or "
                 "reparameterize the model.\n\n";
  }
  return few.empty() && apart.empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) {
    std::cout << "Usage: diagnose <Stan CSV file of a chain> ...\n";
    return 1;
  }
  try {
    const Chains chains = read_chains(std::vector<std::string>(argv + 1, argv + argc));
    bool good = check_treedepth(chains);
    good = check_divergences(chains) && good;
    good = check_energy(chains) && good;
    good = check_parameters(chains) && good;
    std::cout << (good ? "Processing complete, no problems detected.\n" : "Processing complete.\n");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "diagnose: " << error.what() << "\n";
    return 1;
  }
}

#include "chains.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace frontend {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance_of(const std::vector<double>& values) {
  const double center = mean_of(values);
  double sum = 0;
  for (double value : values)
    sum += (value - center) * (value - center);
  return sum / static_cast<double>(values.size() - 1);
}

// sum_t (x_t - mean)(x_{t+lag} - mean) / n
double autocovariance(const std::vector<double>& chain, double center, std::size_t lag) {
  double sum = 0;
  for (std::size_t t = 0; t + lag < chain.size(); ++t)
    sum += (chain[t] - center) * (chain[t + lag] - center);
  return sum / static_cast<double>(chain.size());
}

bool nearly(double a, double b) { return std::fabs(a - b) <= 1e-12 * std::min(std::fabs(a), std::fabs(b)); }

// Returns chains of equal length, or nothing if the statistics are undefined: non-finite values or constant chains.
Draws comparable(const Draws& draws) {
  std::size_t length = draws.empty() ? 0 : draws[0].size();
  for (const auto& chain : draws)
    length = std::min(length, chain.size());
  if (length == 0)
    return {};
  Draws equal;
  bool some_constant = false;
  bool same_start = true;
  for (const auto& chain : draws) {
    equal.emplace_back(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(length));
    const auto& values = equal.back();
    if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); }))
      return {};
    const auto stands = [&values](double value) { return nearly(value, values[0]); };
    some_constant |= std::all_of(values.begin(), values.end(), stands);
    same_start &= nearly(values[0], equal[0][0]);
  }
  return some_constant && same_start ? Draws{} : equal;
}

std::vector<double> pooled(const Draws& draws) {
  std::vector<double> all;
  for (const auto& chain : draws)
    all.insert(all.end(), chain.begin(), chain.end());
  return all;
}

}  // namespace

Draws Chains::draws(std::size_t column) const {
  Draws draws;
  for (std::size_t chain = 0; chain < files.size(); ++chain) {
    draws.emplace_back();
    for (std::size_t row = saved_warmup[chain]; row < files[chain].rows.size(); ++row)
      draws.back().push_back(files[chain].rows[row][column]);
  }
  return draws;
}

std::size_t Chains::num_draws() const {
  std::size_t count = 0;
  for (std::size_t chain = 0; chain < files.size(); ++chain)
    count += files[chain].rows.size() - saved_warmup[chain];
  return count;
}

Chains read_chains(const std::vector<std::string>& paths) {
  Chains chains;
  for (const std::string& path : paths) {
    StanCsv csv = read_stan_csv(path);
    if (!chains.files.empty() && csv.header != chains.names())
      throw std::invalid_argument(path + " has other columns than " + paths[0] + ": they are not of one run");
    std::size_t warmup = 0;
    const std::string save_warmup = csv.setting("save_warmup", "false");
    if (save_warmup == "true" || save_warmup == "1") {
      const std::size_t thin = std::stoul(csv.setting("thin", "1"));
      warmup = (std::stoul(csv.setting("num_warmup", "0")) + thin - 1) / thin;
    }
    if (csv.rows.size() <= warmup)
      throw std::invalid_argument("No sampling draws found in " + path);
    chains.files.push_back(std::move(csv));
    chains.saved_warmup.push_back(warmup);
  }
  return chains;
}

std::string with_brackets(const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos)
    return name;
  std::string pretty = name.substr(0, dot) + "[" + name.substr(dot + 1) + "]";
  std::replace(pretty.begin(), pretty.end(), '.', ',');
  return pretty;
}

double mean(const Draws& draws) { return mean_of(pooled(draws)); }

double standard_deviation(const Draws& draws) { return std::sqrt(variance_of(pooled(draws))); }

std::vector<double> quantiles(const Draws& draws, const std::vector<double>& probabilities) {
  std::vector<double> sorted = pooled(draws);
  std::sort(sorted.begin(), sorted.end());
  const auto size = sorted.size();
  std::vector<double> found;
  for (double probability : probabilities) {
    const bool from_left = probability < 0.5;
    const double tail = from_left ? probability : 1 - probability;
    const auto rank = static_cast<std::size_t>(std::ceil(static_cast<double>(size) * tail));
    found.push_back(rank == 0 || rank >= size ? nan : sorted[from_left ? rank - 1 : size - rank]);
  }
  return found;
}

double effective_sample_size(const Draws& draws) {
  const Draws chains = comparable(draws);
  if (chains.empty() || chains[0].size() < 4)
    return nan;
  const std::size_t length = chains[0].size();
  const double n = static_cast<double>(length);
  std::vector<double> means;
  for (const auto& chain : chains)
    means.push_back(mean_of(chain));
  const auto mean_autocovariance = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t c = 0; c < chains.size(); ++c)
      sum += autocovariance(chains[c], means[c], lag);
    return sum / static_cast<double>(chains.size());
  };
  const double within = mean_autocovariance(0) * n / (n - 1);
  const double total = within * (n - 1) / n + (chains.size() > 1 ? variance_of(means) : 0);
  const auto correlation = [&](std::size_t lag) { return 1 - (within - mean_autocovariance(lag)) / total; };

  // Use pairs (2k, 2k + 1) of autocorrelations while their sum is positive; the last lags only enter as a bias term.
  std::vector<double> rho(length + 2, 0.0);
  double even = 1;
  double odd = correlation(1);
  rho[0] = even;
  rho[1] = odd;
  std::size_t last = 1;
  while (last < length - 4 && even + odd > 0) {
    even = correlation(last + 1);
    odd = correlation(last + 2);
    if (even + odd >= 0) {
      rho[last + 1] = even;
      rho[last + 2] = odd;
    }
    last += 2;
  }
  // This reduces the variance of the estimate for antithetic chains.
  if (even > 0)
    rho[last + 1] = even;
  // In a reversible chain the sums of pairs decrease.
  for (std::size_t s = 1; s + 3 <= last; s += 2) {
    if (rho[s + 1] + rho[s + 2] > rho[s - 1] + rho[s])
      rho[s + 1] = rho[s + 2] = (rho[s - 1] + rho[s]) / 2;
  }
  const double head = std::accumulate(rho.begin(), rho.begin() + static_cast<std::ptrdiff_t>(last), 0.0);
  const double tau = -1 + 2 * head + rho[last + 1];
  const double count = n * static_cast<double>(chains.size());
  return std::min(count / tau, count * std::log10(count));
}

Draws split(const Draws& draws) {
  std::size_t length = draws[0].size();
  for (const auto& chain : draws)
    length = std::min(length, chain.size());
  const auto half = static_cast<std::ptrdiff_t>(length / 2);
  const auto second = static_cast<std::ptrdiff_t>(length - length / 2);
  Draws halves;
  for (const auto& chain : draws) {
    halves.emplace_back(chain.begin(), chain.begin() + half);
    halves.emplace_back(chain.begin() + second, chain.begin() + second + half);
  }
  return halves;
}

double potential_scale_reduction(const Draws& draws) {
  const Draws chains = comparable(draws);
  if (chains.empty() || chains[0].size() < 2)
    return nan;
  const double n = static_cast<double>(chains[0].size());
  std::vector<double> means;
  std::vector<double> variances;
  for (const auto& chain : chains) {
    means.push_back(mean_of(chain));
    variances.push_back(variance_of(chain));
  }
  return std::sqrt((n * variance_of(means) / mean_of(variances) + n - 1) / n);
}

}  // namespace frontend

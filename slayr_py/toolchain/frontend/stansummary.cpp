// Mean, error, quantiles, effective sample size and split R-hat of every column of a run's Stan CSV files.
#include "chains.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <sstream>
#include <stdexcept>

namespace {

using namespace frontend;

const char* const usage = R"(Usage: stansummary [options] <Stan CSV file of a chain> ...
  -p, --percentiles <5,50,95>  whole percentages between 1 and 99, increasing
  -s, --sig_figs <2>           significant digits, 1 to 18
  -c, --csv_filename <file>    write the table as CSV too
)";

struct Options {
  std::vector<int> percentiles{5, 50, 95};
  int significant_digits = 2;
  bool digits_given = false;
  std::string csv;
  std::vector<std::string> files;
};

std::vector<int> read_percentiles(const std::string& text) {
  std::string spaced = text;
  std::replace(spaced.begin(), spaced.end(), ',', ' ');
  std::istringstream words(spaced);
  std::vector<int> percentiles;
  for (int value; words >> value;) {
    if (value < 1 || value > 99 || (!percentiles.empty() && value <= percentiles.back()))
      throw std::invalid_argument("--percentiles=" + text + ": give increasing whole numbers between 1 and 99");
    percentiles.push_back(value);
  }
  if (!words.eof())
    throw std::invalid_argument("--percentiles=" + text + ": give whole numbers with commas between them");
  return percentiles;
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.empty() || word[0] != '-') {
      options.files.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (equals == std::string::npos && i + 1 == argc)
      throw std::invalid_argument(name + " needs a value");
    const std::string value = equals == std::string::npos ? argv[++i] : word.substr(equals + 1);
    if (name == "-p" || name == "--percentiles") {
      options.percentiles = read_percentiles(value);
    } else if (name == "-s" || name == "--sig_figs") {
      options.significant_digits = std::atoi(value.c_str());
      options.digits_given = true;
      if (options.significant_digits < 1 || options.significant_digits > 18)
        throw std::invalid_argument("--sig_figs=" + value + ": give a whole number between 1 and 18");
    } else if (name == "-c" || name == "--csv_filename") {
      options.csv = value;
    } else {
      throw std::invalid_argument("unknown option " + name + "\n" + usage);
    }
  }
  if (options.files.empty())
    throw std::invalid_argument(usage);
  return options;
}

// Order of the columns in the report: those of the algorithm, then each variable with the last index changing fastest.
std::vector<std::size_t> report_order(const std::vector<std::string>& names) {
  const auto indices = [&names](std::size_t column) {
    std::string text = names[column];
    std::replace(text.begin(), text.end(), '.', ' ');
    std::istringstream words(text);
    std::string base;
    words >> base;
    std::vector<long> found;
    for (long index; words >> index;)
      found.push_back(index);
    return found;
  };
  const auto base = [&names](std::size_t column) { return names[column].substr(0, names[column].find('.')); };
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first + 1;
    while (last < order.size() && base(last) == base(first))
      ++last;
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.begin() + static_cast<std::ptrdiff_t>(last),
                     [&indices](std::size_t a, std::size_t b) { return indices(a) < indices(b); });
    first = last;
  }
  return order;
}

std::string number(double value, int digits) {
  std::ostringstream text;
  text << std::setprecision(digits) << value;
  return text.str();
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : ", ") + word;
  return text;
}

// Lines about the run, printed before and after the table.
std::vector<std::string> run_lines(const Chains& chains) {
  std::vector<std::string> draws, warmup, sampling;
  for (std::size_t chain = 0; chain < chains.files.size(); ++chain) {
    draws.push_back(std::to_string(chains.files[chain].rows.size() - chains.saved_warmup[chain]));
    warmup.push_back(number(chains.files[chain].seconds("Warm-up"), 2));
    sampling.push_back(number(chains.files[chain].seconds("Sampling"), 2));
  }
  return {"Inference for Stan model: " + chains.files[0].setting("model", "unknown"),
          std::to_string(chains.files.size()) + " chains of (" + joined(draws) + ") draws, thin = "
              + chains.files[0].setting("thin", "1") + ", " + std::to_string(chains.num_draws()) + " draws in all.",
          "",
          "Warmup took (" + joined(warmup) + ") seconds",
          "Sampling took (" + joined(sampling) + ") seconds"};
}

std::vector<std::string> explanation(const Chains& chains) {
  return {"Samples were drawn using " + chains.files[0].setting("algorithm", "unknown") + " with "
              + chains.files[0].setting("engine", "no engine") + ".",
          "N_Eff estimates the effective sample size; R_hat compares halves of chains, and is 1 at convergence."};
}

int report(const Options& options) {
  const Chains chains = read_chains(options.files);
  double sampling_seconds = 0;
  for (const StanCsv& file : chains.files)
    sampling_seconds += file.seconds("Sampling");

  std::vector<std::string> header{"Mean", "MCSE", "StdDev"};
  std::vector<double> probabilities;
  for (int percentile : options.percentiles) {
    header.push_back(std::to_string(percentile) + "%");
    probabilities.push_back(percentile / 100.0);
  }
  header.insert(header.end(), {"N_Eff", "N_Eff/s", "R_hat"});

  std::vector<std::string> names;
  std::vector<std::vector<double>> rows;
  std::size_t widest = 0;
  for (std::size_t column : report_order(chains.names())) {
    const Draws draws = chains.draws(column);
    const double deviation = standard_deviation(draws);
    const double effective = effective_sample_size(draws);
    std::vector<double> row{mean(draws), deviation / std::sqrt(effective), deviation};
    const std::vector<double> found = quantiles(draws, probabilities);
    row.insert(row.end(), found.begin(), found.end());
    row.insert(row.end(), {effective, effective / sampling_seconds, potential_scale_reduction(split(draws))});
    rows.push_back(std::move(row));
    names.push_back(with_brackets(chains.names()[column]));
    widest = std::max(widest, names.back().size());
  }

  const int width = std::max(10, options.significant_digits + 8);
  for (const std::string& line : run_lines(chains))
    std::cout << line << "\n";
  std::cout << "\n" << std::setw(static_cast<int>(widest)) << "";
  for (const std::string& title : header)
    std::cout << std::setw(width) << title;
  std::cout << "\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::cout << std::left << std::setw(static_cast<int>(widest)) << names[i] << std::right;
    for (double value : rows[i])
      std::cout << std::setw(width) << number(value, options.significant_digits);
    std::cout << "\n";
  }
  std::cout << "\n";
  for (const std::string& line : explanation(chains))
    std::cout << line << "\n";

  if (options.csv.empty())
    return 0;
  std::ofstream csv(options.csv);
  const int digits = options.digits_given ? options.significant_digits : 6;
  csv << "name";
  for (const std::string& title : header)
    csv << "," << title;
  csv << "\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    csv << "\"" << names[i] << "\"";
    for (double value : rows[i])
      csv << "," << number(value, digits);
    csv << "\n";
  }
  for (const auto& lines : {run_lines(chains), explanation(chains)})
    for (const std::string& line : lines)
      csv << "# " << line << "\n";
  csv.close();
  if (!csv)
    throw std::runtime_error("Cannot write file \"" + options.csv + "\"");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = read_options(argc, argv);
    return report(options);
  } catch (const std::exception& error) {
    std::cerr << "stansummary: " << error.what() << "\n";
    return 1;
  }
}

#pragma once
// Reader of Stan CSV files: comments, header, rows of numbers.
#include <string>
#include <vector>

namespace frontend {

struct StanCsv {
  std::vector<std::string> comments;  // without the leading "#" and blanks
  std::vector<std::string> header;    // as written: elements of `theta` are theta.1, theta.2
  std::vector<std::vector<double>> rows;

  // The value of the first comment `key = value`, without "(Default)"; `missing` when there is none.
  std::string setting(const std::string& key, const std::string& missing) const;
  // The seconds of the comment `... seconds (stage)`, else 0.
  double seconds(const std::string& stage) const;
  // How many leading columns belong to the algorithm: their names end in "__".
  std::size_t algorithm_columns() const;
};

// Throws std::invalid_argument with the file's name and line.
StanCsv read_stan_csv(const std::string& path);

}  // namespace frontend

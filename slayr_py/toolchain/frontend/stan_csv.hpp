#pragma once
// Reader of Stan CSV files: comments, header, rows of numbers.
#include <string>
#include <vector>

namespace frontend {

struct StanCsv {
  std::vector<std::string> comments;  // without the leading "#" and blanks
  std::vector<std::string> header;    // as written: elements of `theta` are theta.1, theta.2
  std::vector<std::vector<double>> rows;

  // The value of the first comment `key = value`, without "(Default)"; `missing` if there is none.
  std::string setting(const std::string& key, const std::string& missing) const;
  // The seconds in the comment `... seconds (stage)`; 0 if there is none.
  double seconds(const std::string& stage) const;
  // Number of leading columns that belong to the algorithm; their names end in "__".
  std::size_t algorithm_columns() const;
};

// Throws std::invalid_argument with the name of the file and the line.
StanCsv read_stan_csv(const std::string& path);

}  // namespace frontend

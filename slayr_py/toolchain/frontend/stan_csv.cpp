#include "stan_csv.hpp"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace frontend {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::size_t start = 0;
  for (std::size_t comma = line.find(','); comma != std::string::npos; comma = line.find(',', start)) {
    cells.push_back(line.substr(start, comma - start));
    start = comma + 1;
  }
  cells.push_back(line.substr(start));
  for (std::string& cell : cells) {
    const std::size_t first = cell.find_first_not_of(" \t\"");
    const std::size_t last = cell.find_last_not_of(" \t\"\r");
    cell = first == std::string::npos ? "" : cell.substr(first, last - first + 1);
  }
  return cells;
}

}  // namespace

std::string StanCsv::setting(const std::string& key, const std::string& missing) const {
  const std::string start = key + " =";
  for (const std::string& comment : comments) {
    if (comment.compare(0, start.size(), start) != 0)
      continue;
    std::string value = comment.substr(start.size());
    value = value.substr(0, value.find("(Default)"));
    const std::size_t first = value.find_first_not_of(' ');
    return first == std::string::npos ? "" : value.substr(first, value.find_last_not_of(' ') - first + 1);
  }
  return missing;
}

double StanCsv::seconds(const std::string& stage) const {
  const std::string end = " seconds (" + stage + ")";
  for (const std::string& comment : comments) {
    const std::size_t at = comment.find(end);
    if (at == std::string::npos)
      continue;
    const std::size_t blank = comment.find_last_of(' ', at == 0 ? 0 : at - 1);
    return std::strtod(comment.c_str() + (blank == std::string::npos ? 0 : blank), nullptr);
  }
  return 0;
}

std::size_t StanCsv::algorithm_columns() const {
  std::size_t count = 0;
  while (count < header.size() && header[count].size() > 2 && header[count].compare(header[count].size() - 2, 2, "__") == 0)
    ++count;
  return count;
}

StanCsv read_stan_csv(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw std::invalid_argument("Cannot open file \"" + path + "\"");
  StanCsv csv;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line == "\r")
      continue;
    if (line[0] == '#') {
      const std::size_t first = line.find_first_not_of("# \t");
      const std::size_t last = line.find_last_not_of(" \t\r");
      csv.comments.push_back(first == std::string::npos ? "" : line.substr(first, last - first + 1));
      continue;
    }
    const std::vector<std::string> cells = split(line);
    if (csv.header.empty()) {
      csv.header = cells;
      continue;
    }
    if (cells.size() != csv.header.size())
      throw std::invalid_argument(path + ", line " + std::to_string(number) + ": " + std::to_string(cells.size())
                                  + " values for " + std::to_string(csv.header.size()) + " columns; was the run cut short?");
    std::vector<double> row(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      char* end = nullptr;
      row[i] = std::strtod(cells[i].c_str(), &end);
      if (cells[i].empty() || *end != '\0')
        throw std::invalid_argument(path + ", line " + std::to_string(number) + ": \"" + cells[i] + "\" is not a number");
    }
    csv.rows.push_back(std::move(row));
  }
  if (csv.header.empty())
    throw std::invalid_argument("\"" + path + "\" has no header line: it is not a Stan CSV file");
  return csv;
}

}  // namespace frontend

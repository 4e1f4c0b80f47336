// Names of input and output files, and the reader of JSON files.
#include "run.hpp"

#include <stan/io/empty_var_context.hpp>
#include <stan/io/json/json_data.hpp>

#include <stdexcept>

namespace frontend {
namespace {

std::shared_ptr<stan::io::var_context> read_context(const std::string& path) {
  if (path.empty())
    return std::make_shared<stan::io::empty_var_context>();
  if (split_suffix(path).second != ".json")
    throw UsageError("Cannot read \"" + path + "\": data, initial values and metrics are JSON files that end in .json");
  std::ifstream file(path);
  if (!file)
    throw std::invalid_argument("Cannot open file \"" + path + "\"");
  try {
    return std::make_shared<stan::json::json_data>(file);
  } catch (const std::exception& error) {
    throw std::invalid_argument("\"" + path + "\" is not the JSON that Stan reads: " + error.what());
  }
}

}  // namespace

std::size_t folder_length(const std::string& path) {
#ifdef _WIN32
  return path.find_last_of("/\\:") + 1;
#else
  return path.find_last_of('/') + 1;
#endif
}

std::pair<std::string, std::string> split_suffix(const std::string& path) {
  const std::size_t dot = path.find_last_of('.');
  if (dot == std::string::npos || dot <= folder_length(path) || dot + 1 == path.size())
    return {path, ""};
  return {path.substr(0, dot), path.substr(dot)};
}

std::vector<std::string> numbered(const std::string& base, const std::string& suffix, unsigned int num_chains, unsigned int id) {
  if (num_chains == 1)
    return {base + suffix};
  std::vector<std::string> names;
  for (unsigned int chain = 0; chain < num_chains; ++chain)
    names.push_back(base + "_" + std::to_string(id + chain) + suffix);
  return names;
}

Contexts read_contexts(const std::string& path, unsigned int num_chains, unsigned int id) {
  const auto [base, suffix] = split_suffix(path);
  const std::vector<std::string> names = numbered(base, suffix, num_chains, id);
  if (path.empty() || !std::ifstream(names[0]))
    return Contexts(num_chains, read_context(path));
  Contexts contexts;
  for (const std::string& name : names)
    contexts.push_back(read_context(name));
  return contexts;
}

}  // namespace frontend

#pragma once
// One run of a model: the inputs of every method, and the methods. These sources use only the base class of the model, so
// they are compiled once and linked to every program.
#include "arguments.hpp"
#include "lean_math.hpp"

#include <stan/callbacks/interrupt.hpp>
#include <stan/callbacks/json_writer.hpp>
#include <stan/callbacks/stream_logger.hpp>
#include <stan/callbacks/unique_stream_writer.hpp>
#include <stan/callbacks/writer.hpp>
#include <stan/io/var_context.hpp>
#include <stan/model/model_base.hpp>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frontend {

using CsvWriter = stan::callbacks::unique_stream_writer<std::ofstream>;
using JsonWriter = stan::callbacks::json_writer<std::ofstream>;
using Contexts = std::vector<std::shared_ptr<stan::io::var_context>>;

struct Run {
  stan::model::model_base& model;
  const Argument& method;  // subarguments of the chosen method
  unsigned int seed;
  unsigned int id;
  unsigned int num_chains;
  int refresh;
  double init_radius;
  Contexts inits;  // one for each chain
  stan::callbacks::interrupt interrupt;
  stan::callbacks::logger& logger;
  std::vector<stan::callbacks::writer> init_writers;
  std::vector<CsvWriter> draws;             // one for each chain, or for each path of Pathfinder
  std::vector<CsvWriter> diagnostics;       // unconstrained parameters, momenta and gradients
  std::vector<JsonWriter> no_json;          // discards what Stan would write as JSON: metrics, iterations, Hessians
  std::unique_ptr<CsvWriter> resampled;     // Pathfinder's draws from all paths combined

  int integer(const std::string& name) const { return static_cast<int>(method[name].as_integer()); }
  double real(const std::string& name) const { return method[name].as_real(); }
  bool boolean(const std::string& name) const { return method[name].as_boolean(); }
  const std::string& text(const std::string& name) const { return method[name].value; }
};

// Length of the folder in front of a file's name, with the separator; 0 without a folder.
std::size_t folder_length(const std::string& path);

// "fit.csv" -> {"fit", ".csv"}; no suffix if the last dot is in a folder's name or is the first character of the name.
std::pair<std::string, std::string> split_suffix(const std::string& path);

// Names of the files of the chains, numbered from `id`; a single chain has no number.
std::vector<std::string> numbered(const std::string& base, const std::string& suffix, unsigned int num_chains, unsigned int id);

// Reads the JSON files of the chains: `f_<id>.json` for each if they exist, otherwise `f.json` for all.
Contexts read_contexts(const std::string& path, unsigned int num_chains, unsigned int id);

int sample(Run& run);
int optimize(Run& run);
int laplace(Run& run);
int pathfinder(Run& run);
int generate_quantities(Run& run);
int log_prob(Run& run);
int diagnose(Run& run);

}  // namespace frontend

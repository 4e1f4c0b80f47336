// The main program: reads the arguments, opens the files and runs the method.
#include "run.hpp"

#include <stan/math/prim/core/init_threadpool_tbb.hpp>
#include <stan/math/rev/core/profiling.hpp>
#include <stan/version.hpp>

#include <ctime>
#include <iostream>

// Defined in the C++ code that stanc generates.
stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed, std::ostream* messages);
stan::math::profile_map& get_stan_profile_data();

namespace frontend {
namespace {

constexpr bool defined_threads =
#ifdef STAN_THREADS
    true;
#else
    false;
#endif
constexpr bool defined_no_range_checks =
#ifdef STAN_NO_RANGE_CHECKS
    true;
#else
    false;
#endif

void print_info(std::ostream& out) {
  const auto flag = [](bool defined) { return defined ? "true" : "false"; };
  out << "stan_version_major = " << stan::MAJOR_VERSION << "\n"
      << "stan_version_minor = " << stan::MINOR_VERSION << "\n"
      << "stan_version_patch = " << stan::PATCH_VERSION << "\n"
      << "STAN_THREADS=" << flag(defined_threads) << "\n"
      << "STAN_MPI=false\n"
      << "STAN_OPENCL=false\n"
      << "STAN_NO_RANGE_CHECKS=" << flag(defined_no_range_checks) << "\n"
      << "STAN_CPP_OPTIMS=false\n";
}

std::string start_datetime() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", std::gmtime(&now));
  return text;
}

void write_header(CsvWriter& csv, const Argument& root, const stan::model::model_base& model, bool with_compilation) {
  csv("stan_version_major = " + stan::MAJOR_VERSION);
  csv("stan_version_minor = " + stan::MINOR_VERSION);
  csv("stan_version_patch = " + stan::PATCH_VERSION);
  csv("model = " + model.model_name());
  if (with_compilation)
    csv("start_datetime = " + start_datetime());
  for (const Argument& argument : root.children)
    print(argument, 0, csv);
  if (with_compilation)
    for (const std::string& line : model.model_compile_info())
      csv(line);
}

std::unique_ptr<std::ofstream> create(const std::string& path, int significant_digits) {
  auto file = std::make_unique<std::ofstream>(path);
  if (!*file)
    throw std::runtime_error("Cannot write file \"" + path + "\"");
  // A full disk must be an error and not truncate the file.
  file->exceptions(std::ofstream::badbit);
  if (significant_digits > -1)
    file->precision(significant_digits);
  return file;
}

void write_profile(const std::string& path, int significant_digits, const stan::math::profile_map& profiles) {
  const auto file = create(path, significant_digits);
  *file << "name,thread_id,total_time,forward_time,reverse_time,chain_stack,no_chain_stack,autodiff_calls,no_autodiff_calls\n";
  for (const auto& [key, profile] : profiles)
    *file << key.first << "," << key.second << "," << profile.get_fwd_time() + profile.get_rev_time() << ","
          << profile.get_fwd_time() << "," << profile.get_rev_time() << "," << profile.get_chain_stack_used() << ","
          << profile.get_nochain_stack_used() << "," << profile.get_num_rev_passes() << ","
          << profile.get_num_no_AD_fwd_passes() << "\n";
}

unsigned int number_of_chains(const Argument& root) {
  const Argument& method = root["method"];
  if (method.chose("pathfinder"))
    return static_cast<unsigned int>(method.chosen()["num_paths"].as_integer());
  if (method.chose("sample") || method.chose("generate_quantities"))
    return static_cast<unsigned int>(method.chosen()["num_chains"].as_integer());
  return 1;
}

// Writers to the given paths; a writer with an empty path discards its output.
std::vector<CsvWriter> csv_writers(const std::vector<std::string>& paths, int significant_digits) {
  std::vector<CsvWriter> writers;
  writers.reserve(paths.size());
  for (const std::string& path : paths)
    writers.emplace_back(path.empty() ? nullptr : create(path, significant_digits), "# ");
  return writers;
}

struct OutputFiles {
  std::vector<std::string> draws, diagnostics;
  std::string resampled;
};

OutputFiles output_files(const Argument& root, unsigned int num_chains, unsigned int id) {
  const Argument& output = root["output"];
  const Argument& method = root["method"];
  const std::vector<std::string> nowhere(num_chains);
  OutputFiles files{nowhere, nowhere, ""};
  auto [base, suffix] = split_suffix(output["file"].value);
  if (folder_length(base) == base.size())
    throw UsageError("output file=" + output["file"].value + " is not the name of a file");
  if (suffix.empty())
    suffix = ".csv";
  if (method.chose("pathfinder") && num_chains > 1)
    files.resampled = base + suffix;
  else if (method.chose("pathfinder"))
    files.draws = {base + suffix};
  else
    files.draws = numbered(base, suffix, num_chains, id);
  const std::string& diagnostic = output["diagnostic_file"].value;
  if (!diagnostic.empty() && !method.chose("sample"))
    throw UsageError("diagnostic_file=" + diagnostic + " needs method=sample: the other methods write none");
  if (!diagnostic.empty()) {
    const auto [diagnostic_base, diagnostic_suffix] = split_suffix(diagnostic);
    files.diagnostics = numbered(diagnostic_base, diagnostic_suffix.empty() ? ".csv" : diagnostic_suffix, num_chains, id);
  }
  return files;
}

int run_method(const std::string& method, Run& run) {
  if (method == "sample")
    return sample(run);
  if (method == "optimize")
    return optimize(run);
  if (method == "laplace")
    return laplace(run);
  if (method == "pathfinder")
    return pathfinder(run);
  if (method == "generate_quantities")
    return generate_quantities(run);
  if (method == "log_prob")
    return log_prob(run);
  return diagnose(run);
}

int command(const std::vector<std::string>& words) {
  if (!words.empty() && words[0] == "info") {
    print_info(std::cout);
    return 0;
  }
  const int environment_threads = stan::math::internal::get_num_threads();
  Argument root = argument_table(environment_threads);
  parse(root, words);

  const int num_threads = static_cast<int>(root["num_threads"].as_integer());
  if (num_threads == 0)
    throw UsageError("num_threads=0: give a positive number, or -1 for every core");
  if (environment_threads != 1 && environment_threads != num_threads)
    throw UsageError("STAN_NUM_THREADS=" + std::to_string(environment_threads) + " but num_threads="
                     + std::to_string(num_threads) + ": set one of them, or both alike");
  stan::math::init_threadpool_tbb(num_threads);

  for (const Argument& argument : root.children)
    print(argument, 0, [](const std::string& line) { std::cout << line << "\n"; });
  std::cout << std::endl;

  const Argument& output = root["output"];
  const auto id = static_cast<unsigned int>(root["id"].as_integer());
  const auto seed = static_cast<unsigned int>(root["random"]["seed"].as_integer());
  const unsigned int num_chains = number_of_chains(root);
  const int significant_digits = static_cast<int>(output["sig_figs"].as_integer());
  const OutputFiles files = output_files(root, num_chains, id);

  // `init` is a radius if it is a number, otherwise a file.
  double init_radius = 2;
  std::string init_file = root["init"].value;
  try {
    init_radius = std::stod(init_file);
    init_file.clear();
  } catch (const std::logic_error&) {
  }

  const auto data = read_contexts(root["data"]["file"].value, 1, 1)[0];
  stan::model::model_base& model = new_model(*data, seed, &std::cout);
  stan::callbacks::stream_logger logger(std::cout, std::cout, std::cout, std::cerr, std::cerr);
  Run run{model,
          root["method"].chosen(),
          seed,
          id,
          num_chains,
          static_cast<int>(output["refresh"].as_integer()),
          init_radius,
          read_contexts(init_file, num_chains, id),
          {},
          logger,
          std::vector<stan::callbacks::writer>(num_chains),
          csv_writers(files.draws, significant_digits),
          csv_writers(files.diagnostics, significant_digits),
          std::vector<JsonWriter>(num_chains),
          nullptr};
  for (CsvWriter& csv : run.draws)
    write_header(csv, root, model, true);
  for (CsvWriter& csv : run.diagnostics)
    write_header(csv, root, model, false);
  if (!files.resampled.empty()) {
    run.resampled = std::make_unique<CsvWriter>(create(files.resampled, significant_digits), "# ");
    write_header(*run.resampled, root, model, true);
  }

  const int status = run_method(root["method"].value, run);
  if (const stan::math::profile_map& profiles = get_stan_profile_data(); !profiles.empty())
    write_profile(output["profile_file"].value, significant_digits, profiles);
  return status;
}

}  // namespace
}  // namespace frontend

// The status is 0, or 1 for any error, as in CmdStan.
int main(int argc, char** argv) {
  try {
    return frontend::command(std::vector<std::string>(argv + 1, argv + argc)) == 0 ? 0 : 1;
  } catch (const std::ios_base::failure& error) {
    std::cerr << "Error: writing an output file failed: is the disk full? (" << error.what() << ")" << std::endl;
  } catch (const std::exception& error) {
    std::cout.flush();
    // cmdstanpy prints the lines that start with this word.
    std::cerr << "Error: " << error.what() << std::endl;
  }
  return 1;
}

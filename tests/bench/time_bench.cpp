// Kiln's predicted times beside the published times of peers for the same work, by size class. What Kiln has is a prediction, what
// peers have was measured by their authors: published_times.csv says by whom and how. Arguments: words that select lines by chip or by
// work ("mi355x", "gemm"), and files of such lines in place of published_times.csv.
#include "gen/catalog/catalog.h"
#include "gen/plan/target.h"
#include "isa_checks/timing/predict.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/record.h"
#include "tests/bench/arguments.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <utility>

using namespace kiln;

namespace {

struct Work {
  std::string chip, kind, cache;
  std::int64_t m = 0, n = 0, k = 0;
  auto operator<=>(const Work&) const = default;
};
struct Published {
  std::string peer;
  double us = 0;
};

std::map<Work, std::vector<Published>> read_published(const std::string& path) {
  std::map<Work, std::vector<Published>> all;
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": it cannot be read");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.starts_with("source,")) continue;
    std::vector<std::string> field;
    std::stringstream fields(line);
    for (std::string f; std::getline(fields, f, ',');) field.push_back(f);
    if (field.size() != 9) throw std::runtime_error(fmt::format("{}: \"{}\" has {} fields, not 9", path, line, field.size()));
    all[{field[2], field[3], field[7], std::stol(field[4]), std::stol(field[5]), std::stol(field[6])}].push_back(
        {field[1], std::stod(field[8])});
  }
  return all;
}

constexpr std::int64_t few_rows = 32;
bool is_product(const Work& w) { return w.kind == "gemm" || w.kind == "block"; }

KernelSpec spec_of(const Work& w, const Target& target) {
  CatalogOptions options;
  options.fp8 = target.fp8();
  if (is_product(w)) {
    options.dtype = target.fp8();
    options.m = w.m;
    options.n = w.n;
    options.k = w.k;
    return catalog_spec(w.kind == "gemm" ? "gemm" : "gemm_block_scaled", options);
  }
  options.cols = w.n;
  options.in_place = w.kind == "rms";
  if (w.m <= few_rows) options.max_rows = w.m; // a kernel of its own, as a product of few rows has one
  return catalog_spec(w.kind == "rms" ? "add_rmsnorm_quant" : "swiglu_quant", options);
}

double bytes_of(const Work& w) {
  const auto m = static_cast<double>(w.m), n = static_cast<double>(w.n), k = static_cast<double>(w.k);
  return is_product(w) ? n * k + m * k + 2 * m * n : w.kind == "rms" ? m * n * 7 + 2 * n : m * n * 5;
}

struct SizeClass {
  double log_ratio = 0, worst = 0; // summed; the largest
  int count = 0;
};
constexpr double largest = 1e9;
// The class by the megabytes that it ends below.
double class_of(double bytes) {
  for (const double edge : {0.5, 2.0, 8.0, 40.0, 100.0})
    if (bytes < edge * 1e6) return edge;
  return largest;
}

timing::CacheState state_of(const std::string& name) {
  return name == "cold" ? timing::CacheState::cold : name == "mall" ? timing::CacheState::mall : timing::CacheState::l2;
}

// Kernels are built once for all rows of a spec.
timing::Prediction predict_work(const Work& w, const timing::Chip& chip, std::map<std::string, BuiltKernel>& built) {
  const Target chosen = target(std::string(chip.arch));
  const KernelSpec spec = spec_of(w, chosen);
  auto found = built.find(to_text(spec));
  if (found == built.end())
    found = built.emplace(to_text(spec), build_kernel(spec, chosen, own_process_options(process_environment()))).first;
  std::map<std::string, std::int64_t> sizes;
  for (const Dim& dim : spec.dynamic_dims()) sizes[dim.name()] = w.m;
  return timing::predict(record_kernel(spec, found->second.source, found->second.object, sizes), chip,
                         {.cache = state_of(w.cache), .changes = false});
}

using Classes = std::map<std::pair<std::string, double>, SizeClass>; // by chip, and the end of the class

// Predicts the works of a file and prints a line for each; `words` select, none of them: all.
void compare(const std::string& path, const std::vector<std::string>& words, std::size_t most, Classes& classes) {
  std::map<std::string, std::map<std::string, BuiltKernel>> built; // by chip
  for (const auto& [w, published] : read_published(path)) {
    if (!std::ranges::all_of(words, [&w](const std::string& word) { return word == w.chip || word == w.kind; })) continue;
    if (most-- == 0) break;
    const Published& best = *std::ranges::min_element(published, {}, &Published::us);
    const timing::Prediction p = predict_work(w, timing::chip(w.chip), built[w.chip]);
    const double ratio = p.microseconds / best.us;
    const timing::Phase& longest = *std::ranges::max_element(p.phases, {}, &timing::Phase::microseconds);
    fmt::print("{:<7} {:<7}{:>6}{:>7}{:>7} {:<5} {:>9.2f} {:<10}{:>10.2f} {:>7.2f} {:>5}  {}: {}\n", w.chip, w.kind, w.m, w.n, w.k, w.cache,
               best.us, best.peer, p.microseconds, ratio, p.workgroups, longest.name, longest.bound_by);
    std::fflush(stdout);
    SizeClass& c = classes[{w.chip, class_of(bytes_of(w))}];
    c.log_ratio += std::log(ratio);
    c.worst = std::max(c.worst, ratio);
    ++c.count;
  }
}

} // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::string> words, files;
    const std::size_t most = take_short_form(argc, argv) ? 2 : static_cast<std::size_t>(-1); // lines of a file
    for (const std::string argument : std::span(argv + 1, static_cast<std::size_t>(argc - 1)))
      (argument.ends_with(".csv") ? files : words).push_back(argument);
    if (files.empty()) files.emplace_back(KILN_SOURCE_DIR "/tests/bench/published_times.csv");
    fmt::print("{:<7} {:<7}{:>6}{:>7}{:>7} {:<5} {:>9} {:<10}{:>10} {:>7} {:>5}  {}\n", "CHIP", "WORK", "M", "N", "K", "CACHE", "PUBLISHED",
               "BY", "PREDICTED", "RATIO", "WGS", "BOUND BY");
    Classes classes;
    for (const std::string& file : files) compare(file, words, most, classes);
    fmt::print("\nKiln's predicted time over the best published one:\n");
    for (const auto& [key, c] : classes)
      fmt::print("  {:<7} {:<14} {:>3} sizes: mean {:.2f}, worst {:.2f}\n", key.first,
                 key.second < largest ? fmt::format("below {:g} MB", key.second) : "larger", c.count, std::exp(c.log_ratio / c.count),
                 c.worst);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}

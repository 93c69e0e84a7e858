// Kiln's products beside other people's machine code for the same work, both executed and predicted by the same model, so that its errors
// of level cancel. Arguments: the folder that holds the objects, a table of launches (docs/timing_validation.md has its columns), and words
// that select rows by chip or family. With the word `properties`: whether nearer caches make the foreign code slower, or more rows quicker.
// `kiln predict` makes every prediction, in a graph. The short form takes a kernel of Kiln's own for foreign: the ratio has to be 1.
#include "gen/catalog/catalog.h"
#include "gen/plan/target.h"
#include "runtime/build/build_kernel.h"
#include "tests/bench/arguments.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>
#include <sstream>
#include <unistd.h>

using namespace kiln;

namespace {

using Row = std::map<std::string, std::string>; // by column

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::stringstream stream(line);
  for (std::string f; std::getline(stream, f, ',');) {
    std::erase(f, '\r');
    fields.push_back(f);
  }
  return fields;
}

std::vector<Row> read_table(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error(path + ": it cannot be read, or is empty");
  const std::vector<std::string> columns = fields_of(line);
  for (const char* needed : {"chip", "family", "object", "kernel", "m", "n", "k", "split", "cache", "arguments"})
    if (std::ranges::find(columns, needed) == columns.end())
      throw std::runtime_error(fmt::format("{}: it has no column \"{}\"", path, needed));
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() != columns.size())
      throw std::runtime_error(fmt::format("{}: a row has {} fields, not {}", path, fields.size(), columns.size()));
    for (std::size_t i = 0; i < columns.size(); ++i) (i == 0 ? rows.emplace_back() : rows.back())[columns[i]] = fields[i];
  }
  return rows;
}

// Microseconds; NaN with a word about it when the command fails.
double predicted(const std::string& arguments) {
  const std::string command = fmt::format("'{}' predict {} --launch graph --quick --json", KILN_CLI, arguments);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  char part[4096];
  while (pipe && std::fgets(part, sizeof part, pipe.get()) != nullptr) text += part;
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_object() && json.contains("predicted_us")) return json["predicted_us"].get<double>();
  fmt::print(stderr, "failed: {}\n", command);
  return std::nan("");
}

std::string cell(double value) { return std::isnan(value) ? "-" : fmt::format("{:.2f}", value); }

// Kiln's kernel for what a family of aiter's assembly computes, whose bound of m is the row's.
std::string own_spec(const Row& row) {
  static const std::map<std::string, std::string> specs{{"f4gemm", "gemm_mx --mx e2m1 --dtype bf16"},
                                                        {"fp8gemm_blockscale", "gemm_block_scaled --dtype fp8"},
                                                        {"i8gemm", "gemm --dtype i8"},
                                                        {"bf16gemm", "gemm --dtype bf16"}};
  const auto found = specs.find(row.at("family"));
  if (found == specs.end())
    throw std::runtime_error(fmt::format("family \"{}\": Kiln's kernel for it is not known here", row.at("family")));
  return fmt::format("{0} --m {1} --n {2} --k {3} --rows {1} --chip {4} --cache {5}", found->second, row.at("m"), row.at("n"), row.at("k"),
                     row.at("chip"), row.at("cache"));
}

struct Ratios {
  std::vector<double> of; // Kiln over the foreign code
  double at(double share) const { return of[static_cast<std::size_t>(share * static_cast<double>(of.size() - 1) + 0.5)]; }
};

// The rows of a table that each of the words selects.
std::vector<Row> selected(const std::string& table, std::span<const std::string> words) {
  std::vector<Row> rows = read_table(table);
  std::erase_if(rows, [&](const Row& row) {
    const auto is_of = [&](const std::string& word) { return word == row.at("chip") || word == row.at("family"); };
    return std::stoi(row.at("split")) > 1 || !std::ranges::all_of(words, is_of); // split: another launch, not in the table, clears its sums
  });
  return rows;
}

double predicted_foreign(const std::string& folder, const Row& row, const std::string& cache) {
  static const std::regex stated("--cache [a-z0-9]+");
  return predicted(fmt::format("--object '{}/{}' --kernel '{}' {}", folder, row.at("object"), row.at("kernel"),
                               std::regex_replace(row.at("arguments"), stated, "--cache " + cache)));
}

// Says in how many pairs the second time is not below the first, and in which it is furthest below.
void print_order(std::string_view what, const std::vector<std::pair<double, double>>& pairs) {
  const auto falls = std::ranges::count_if(pairs, [](const auto& p) { return p.second < p.first; });
  const auto worst = std::ranges::min_element(pairs, {}, [](const auto& p) { return p.second / p.first; });
  fmt::print("{:<40}{:>5} of {}", what, pairs.size() - static_cast<std::size_t>(falls), pairs.size());
  if (falls != 0) fmt::print(", at worst {:.2f} us and then {:.2f}", worst->first, worst->second);
  fmt::print("\n");
}

// Compares each launch with itself at other caches, and with those that differ from it by their rows alone.
void check_properties(const std::string& folder, const std::string& table, std::span<const std::string> words) {
  std::vector<std::pair<double, double>> to_mall, to_hbm, rows;
  std::map<std::vector<std::string>, std::map<int, double>> by_rows;
  for (const Row& row : selected(table, words)) {
    const double l2 = predicted_foreign(folder, row, "l2"), mall = predicted_foreign(folder, row, "mall"),
                 cold = predicted_foreign(folder, row, "cold");
    if (std::isnan(l2 + mall + cold)) continue;
    to_mall.emplace_back(l2, mall);
    to_hbm.emplace_back(mall, cold);
    by_rows[{row.at("chip"), row.at("object"), row.at("kernel"), row.at("n"), row.at("k")}][std::stoi(row.at("m"))] = cold;
  }
  for (const auto& [launch, of] : by_rows)
    for (auto at = of.begin(); std::next(at) != of.end(); ++at) rows.emplace_back(at->second, std::next(at)->second);
  print_order("out of MALL no quicker than out of L2", to_mall);
  print_order("out of HBM no quicker than out of MALL", to_hbm);
  print_order("more rows no quicker", rows);
}

// By the most rows of a class of m.
std::map<int, Ratios> compare(const std::string& folder, const std::string& table, std::span<const std::string> words) {
  std::map<int, Ratios> classes;
  fmt::print("{:<7} {:<19}{:>5}{:>7}{:>7} {:<5}{:>9}{:>9}{:>7}\n", "CHIP", "FAMILY", "M", "N", "K", "CACHE", "FOREIGN", "KILN", "RATIO");
  for (const Row& row : selected(table, words)) {
    const double foreign = predicted_foreign(folder, row, row.at("cache"));
    const double own = predicted(own_spec(row));
    fmt::print("{:<7} {:<19}{:>5}{:>7}{:>7} {:<5}{:>9}{:>9}{:>7}\n", row.at("chip"), row.at("family"), row.at("m"), row.at("n"),
               row.at("k"), row.at("cache"), cell(foreign), cell(own), cell(own / foreign));
    std::fflush(stdout);
    if (std::isnan(own / foreign)) continue;
    for (const int most : {16, 32, 64, 128, 1 << 30})
      if (std::stoi(row.at("m")) <= most) {
        classes[most].of.push_back(own / foreign);
        break;
      }
  }
  for (auto& [most, ratios] : classes) std::ranges::sort(ratios.of);
  return classes;
}

// A table of one row: Kiln's own object. Returns its file.
std::string write_own(const std::filesystem::path& folder) {
  const Target to = target("mi300x");
  CatalogOptions options;
  options.dtype = bf16;
  options.m = 8, options.n = 512, options.k = 1024;
  const KernelSpec spec = catalog_spec("gemm", options);
  const BuiltKernel built = build_kernel(spec, to, own_process_options(process_environment()));
  std::ofstream(folder / "own.co", std::ios::binary)
      .write(reinterpret_cast<const char*>(built.object.bytes.data()), static_cast<std::streamsize>(built.object.bytes.size()));
  std::string arguments = fmt::format("--grid {} --block {} --chip mi300x --cache cold",
                                      built.source.launch.blocks([](const auto&) { return 8; }), built.source.launch.workgroup_threads());
  const std::map<std::string, std::int64_t> bytes{{"a", 2 * 8 * 1024}, {"b", 2 * 512 * 1024}, {"c", 2 * 8 * 512}};
  for (const KernelArgument& a : built.source.arguments)
    if (a.kind == ArgumentKind::size) arguments += fmt::format(" --arg i{}:8", 8 * a.size);
    else if (a.kind == ArgumentKind::stride) arguments += fmt::format(" --arg i{}:{}", 8 * a.size, a.tensor == "c" ? 512 : 1024);
    else arguments += fmt::format(" --arg zeros:{}", a.kind == ArgumentKind::workspace ? built.source.workspace_bytes : bytes.at(a.name));
  std::ofstream(folder / "own.csv") << "chip,family,object,kernel,m,n,k,split,cache,arguments\nmi300x,bf16gemm,own.co," << built.source.name
                                    << ",8,512,1024,1,cold," << arguments << '\n';
  return folder / "own.csv";
}

int short_form() {
  std::string name = (std::filesystem::temp_directory_path() / "kiln_foreign.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the object can be made");
  const std::string table = write_own(name);
  const std::map<int, Ratios> classes = compare(name, table, {});
  check_properties(name, table, {});
  std::filesystem::remove_all(name);
  const bool is_one = classes.contains(16) && std::abs(classes.at(16).at(0.5) - 1) < 0.01;
  if (!is_one) fmt::print(stderr, "error: Kiln's own object is not predicted as its spec is\n");
  return is_one ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  try {
    if (take_short_form(argc, argv)) return short_form();
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() < 2) {
      fmt::print(
          "foreign: Kiln beside foreign objects. It needs some: ./dev bench foreign -- FOLDER TABLE.csv [properties] [CHIP] [FAMILY]\n");
      return 0;
    }
    const auto words = std::span(arguments).subspan(2);
    if (!words.empty() && words.front() == "properties") {
      check_properties(arguments[0], arguments[1], words.subspan(1));
      return 0;
    }
    const std::map<int, Ratios> classes = compare(arguments[0], arguments[1], words);
    fmt::print("\nKiln's predicted time over that of the foreign code, in the same model:\n{:<12}{:>5}{:>8}{:>8}{:>8}{:>14}\n", "ROWS", "N",
               "P10", "MEDIAN", "P90", "KILN SLOWER");
    for (const auto& [most, ratios] : classes)
      fmt::print("{:<12}{:>5}{:>8.2f}{:>8.2f}{:>8.2f}{:>12.0f} %\n", most < 1 << 30 ? fmt::format("up to {}", most) : "more",
                 ratios.of.size(), ratios.at(0.1), ratios.at(0.5), ratios.at(0.9),
                 100.0 *
                     static_cast<double>(std::ranges::count_if(
                         ratios.of, [](double r) { return r > 1; })) /
                     static_cast<double>(ratios.of.size()));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}

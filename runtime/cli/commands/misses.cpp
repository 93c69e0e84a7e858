// kiln misses: what running programs asked for and did not find, and whether the caches have it by now.
#include "gen/error.h"
#include "isa_checks/plural.h"
#include "runtime/aot/manifest.h"
#include "runtime/cache/cache.h"
#include "runtime/cli/command.h"
#include "runtime/environment.h"
#include "runtime/table.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace kiln::cli {
namespace {

using Json = nlohmann::ordered_json;

struct MissesRequest {
  std::string manifest; // empty: what KILN_JIT_MANIFEST names
  bool json = false;
};

// A kernel of the manifest.
struct Miss {
  AotKernel kernel;
  int times = 0;                // lines that name it; a Jit writes one for each kernel that it misses
  std::optional<Origin> origin; // where the caches in force have it; nothing: nowhere
};

std::string manifest_of(const MissesRequest& request, const Environment& environment) {
  if (!request.manifest.empty()) return request.manifest;
  if (!environment.manifest.empty()) return environment.manifest.string();
  throw UserError("kiln misses", "no manifest is named",
                  "name the file that a program wrote under KILN_JIT_POLICY=record or cache_only, or set KILN_JIT_MANIFEST to it");
}

std::string manifest_text(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw UserError(file, "it cannot be read", "name the manifest of a program that missed a kernel; none is made without a miss");
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<AotKernel> manifest_kernels(const std::string& text, const std::string& file, const Environment& environment,
                                        const LogFunction& log) {
  const std::vector<std::string> archs(known_archs().begin(), known_archs().end());
  CompileOptions options = own_process_options(environment);
  return parse_manifest(text, file, std::filesystem::path(file).parent_path(), archs, options, log);
}

std::vector<Miss> misses_of(const std::string& file, const Environment& environment) {
  const std::string text = manifest_text(file);
  std::vector<Miss> misses;
  for (AotKernel& kernel : manifest_kernels(text, file, environment, log_to_stderr()))
    misses.push_back({.kernel = std::move(kernel), .times = 0, .origin = {}});
  std::map<std::string, int> times; // by id
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    for (const AotKernel& kernel : manifest_kernels(text.substr(at, end + 1 - at), file, environment, [](const std::string&) {}))
      ++times[kernel.id];
  KernelCache cache(cache_options(environment), std::make_shared<EventLog>(log_to_stderr()));
  for (Miss& miss : misses) {
    miss.times = times[miss.kernel.id];
    if (const std::optional<Found> found = cache.find(miss.kernel.request)) miss.origin = found->origin;
  }
  return misses;
}

std::string place_of_miss(const Miss& miss) { return miss.origin ? std::string(to_string(*miss.origin)) : "nowhere"; }

void print_json(const std::vector<Miss>& misses) {
  Json list = Json::array();
  for (const Miss& miss : misses) {
    const KernelRequest& request = miss.kernel.request;
    Json entry{{"kernel", kernel_name(request)}, {"arch", request.arch}, {"times", miss.times}, {"now", place_of_miss(miss)}};
    if (!request.overrides.empty()) entry["set"] = request.overrides;
    entry["spec"] = request.spec;
    list.push_back(std::move(entry));
  }
  fmt::print("{}\n", list.dump(2));
}

void print_text(const std::vector<Miss>& misses, std::size_t missing, const std::string& file) {
  Table table{.header = {"KERNEL", "ARCH", "TIMES", "NOW", "INPUTS"}, .rows = {}, .right = {false, false, true}};
  for (const Miss& miss : misses) {
    const KernelRequest& request = miss.kernel.request;
    std::vector<std::string> inputs;
    for (const Expr& input : parse_spec(request.spec).inputs()) inputs.push_back(type_text(input));
    table.rows.push_back(
        {kernel_name(request), request.arch, std::to_string(miss.times), place_of_miss(miss), fmt::format("{}", fmt::join(inputs, " "))});
  }
  fmt::print("{}{} of {} nowhere\n", to_text(table), missing, isa::plural(misses.size(), "kernel"));
  std::set<std::string> archs;
  for (const Miss& miss : misses)
    if (!miss.origin) archs.insert(miss.kernel.request.arch);
  if (missing != 0)
    fmt::print("to compile them: kiln aot {} --arch {} -o FOLDER, and KILN_CACHE_LAYERS=FOLDER for the program\n", file,
               fmt::join(archs, ","));
}

int run(const MissesRequest& request) {
  const Environment environment = process_environment();
  const std::string file = manifest_of(request, environment);
  const std::vector<Miss> misses = misses_of(file, environment);
  const auto missing = static_cast<std::size_t>(std::ranges::count_if(misses, [](const Miss& miss) { return !miss.origin; }));
  request.json ? print_json(misses) : print_text(misses, missing, file);
  return missing == 0 ? ok : kernel_failed;
}

} // namespace

Command make_misses(CLI::App& root) {
  CLI::App* app = root.add_subcommand("misses", "Show which kernels programs asked for and did not find, and where they are by now");
  const auto request = std::make_shared<MissesRequest>();
  app->add_option("manifest", request->manifest, "What a Jit recorded (KILN_JIT_MANIFEST)");
  app->add_flag("--json", request->json, "Print one JSON document");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli

// Kernels of a path, and which of them a call means.
#include "runtime/tvm_ffi/kernel_set.h"
#include "gen/error.h"
#include "gen/plan/target_text.h"
#include "runtime/aot/manifest.h"
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/events.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <limits>
#include <sstream>

namespace kiln::tvm {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void add(KernelSet& set, Variant variant) { set.variants[variant.spec.name()].push_back(std::move(variant)); }

// Trust and signatures are checked when a kernel is taken (Jit, cache_only); here its names are read.
void add_folder(KernelSet& set, const std::filesystem::path& path, const Target& target) {
  const CacheFolder folder(path, {.writable = false, .trust = Trust::anyone});
  for (const EntryInfo& entry : folder.list()) {
    try {
      const CachedKernel kernel = folder.verify(entry);
      if (kernel.arch != target.arch()) continue;
      Variant variant = variant_of(parse_spec(field_of(kernel.key, "spec")), lines_of(field_of(kernel.key, "overrides")));
      const auto& others = set.variants[kernel.name]; // the same kernel by another compiler
      if (std::ranges::none_of(others,
                               [&](const Variant& other) { return other.spec == variant.spec && other.overrides == variant.overrides; }))
        add(set, std::move(variant));
    } catch (const EntryProblem& problem) {
      throw UserError(fmt::format("entry {}", entry.path.string()), problem.what(), "run kiln cache verify on the folder, or make it anew");
    }
  }
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw UserError(fmt::format("'{}'", file.string()), "it cannot be read", "name a manifest, a cache folder or the text of a spec");
  return text.str();
}

// How far the bounds of run-time sizes are; infinite without bounds. Nothing when the sizes or types are others.
std::optional<double> distance(const Variant& variant, const std::vector<Given>& given) {
  if (variant.parameters.size() != given.size()) return std::nullopt;
  double sum = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Parameter& parameter = variant.parameters[i];
    if (parameter.is_tensor != given[i].is_tensor) return std::nullopt;
    if (!parameter.is_tensor) continue;
    if (parameter.dtype != given[i].dtype || parameter.shape.size() != given[i].shape.size()) return std::nullopt;
    for (std::size_t d = 0; d < parameter.shape.size(); ++d) {
      const Dim& dim = parameter.shape[d];
      const std::int64_t size = given[i].shape[d];
      if (!dim.is_dynamic() && dim.size() != size) return std::nullopt;
      if (!dim.is_dynamic()) continue;
      if (size < dim.min().value_or(0) || size > dim.max().value_or(max_dim_size)) return std::nullopt;
      sum += static_cast<double>(dim.max().value_or(max_dim_size));
    }
  }
  return sum;
}

std::string text_of(const Given& given) {
  return given.is_tensor ? fmt::format("{}[{}]", to_string(given.dtype), fmt::join(given.shape, ", ")) : "a number";
}

std::string list_of(const std::vector<const Variant*>& variants) {
  constexpr std::size_t most = 8; // lines of a message
  std::string text;
  for (std::size_t i = 0; i < std::min(variants.size(), most); ++i) text += "\n  " + signature(*variants[i]);
  if (variants.size() > most) text += fmt::format("\n  and {} more", variants.size() - most);
  return text;
}

} // namespace

Variant variant_of(KernelSpec spec, std::vector<std::string> overrides) {
  std::vector<Parameter> parameters;
  for (const Expr& input : spec.inputs()) {
    const bool overwritten = std::ranges::any_of(spec.outputs(), [&](const Output& output) { return output.in_place_of == input->name; });
    parameters.push_back({.name = input->name, .is_written = overwritten, .dtype = input.dtype(), .shape = input.shape()});
  }
  for (const Expr& number : spec.scalars()) parameters.push_back({.name = number->name, .is_tensor = false, .dtype = number.dtype()});
  for (const Output& output : spec.outputs())
    if (output.in_place_of.empty())
      parameters.push_back({.name = output.name, .is_written = true, .dtype = output.dtype, .shape = output.value.shape()});
  return {std::move(spec), std::move(overrides), std::move(parameters)};
}

std::string signature(const Variant& variant) {
  std::vector<std::string> words;
  for (const Parameter& parameter : variant.parameters)
    words.push_back(fmt::format("{}: {}{}{}", parameter.name, to_string(parameter.dtype),
                                parameter.is_tensor ? to_text(parameter.shape) : "", parameter.is_written ? " out" : ""));
  return fmt::format("{}({})", variant.spec.name(), fmt::join(words, ", "));
}

KernelSet read_kernels(const std::filesystem::path& path, const Target& target, const CompileOptions& options) {
  KernelSet set;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    set.is_folder = true;
    add_folder(set, path, target);
  } else if (path.extension() == ".kiln") {
    add(set, variant_of(parse_spec(content_of(path), target)));
  } else {
    for (const AotKernel& kernel : read_manifest(path, {target.arch()}, options))
      add(set, variant_of(parse_spec(kernel.request.spec), kernel.request.overrides));
  }
  if (set.variants.empty())
    throw UserError(fmt::format("'{}'", path.string()), fmt::format("it holds no kernel for {}", target.arch()),
                    "name what kiln aot made or takes for that architecture");
  return set;
}

const Variant& choose(const std::string& kernel, const std::vector<Variant>& variants, const std::vector<Given>& given) {
  double closest = std::numeric_limits<double>::infinity();
  std::vector<const Variant*> chosen, all;
  for (const Variant& variant : variants) {
    all.push_back(&variant);
    const std::optional<double> far = distance(variant, given);
    if (!far || *far > closest) continue;
    if (*far < closest) chosen.clear();
    closest = *far;
    chosen.push_back(&variant);
  }
  if (chosen.size() == 1) return *chosen.front();
  if (chosen.size() > 1)
    throw UserError("kernel " + kernel, fmt::format("{} kernels of this name take these arguments:{}", chosen.size(), list_of(chosen)),
                    "give kernels that differ in constants alone names of their own");
  std::vector<std::string> words;
  for (const Given& one : given) words.push_back(text_of(one));
  throw UserError("kernel " + kernel, fmt::format("none takes ({}); there are:{}", fmt::join(words, ", "), list_of(all)),
                  "give arguments of these types and sizes, or compile the kernel for yours");
}

} // namespace kiln::tvm

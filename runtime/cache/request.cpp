// KernelRequest and its key.
#include "runtime/cache/request.h"
#include "runtime/digest.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

std::string options_text(const CompileOptions& options) {
  return fmt::format("{}{}", fmt::join(compiler_options(options), " "), options.replace_builtin_header ? "" : " built-in-header");
}

} // namespace

KernelRequest kernel_request(const KernelSpec& spec, const Target& target, std::vector<std::string> overrides,
                             const CompileOptions& options) {
  std::ranges::sort(overrides);
  return {.spec = to_text(spec),
          .arch = target.arch(),
          .chip = target.own_chip(),
          .batch_invariant = target.batch_invariant(),
          .overrides = std::move(overrides),
          .options = options};
}

Target target_of(const KernelRequest& request) {
  return target(request.chip.empty() ? request.arch : request.chip).with_batch_invariance(request.batch_invariant);
}

std::string kernel_name(std::string_view spec) {
  constexpr std::string_view begin = "kernel ";
  if (!spec.starts_with(begin)) return {};
  return std::string(spec.substr(begin.size(), spec.find('\n') - begin.size()));
}

// Every field with its length before it, so that no two lists of fields make one text.
std::string digest_of(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string text;
  for (const auto& [name, value] : fields) text += fmt::format("{} {}\n{}\n", name, value.size(), value);
  return sha256(text);
}

std::string field_of(const CacheKey& key, std::string_view name) {
  for (const auto& [field, value] : key.fields)
    if (field == name) return value;
  return {};
}

CacheKey cache_key(const KernelRequest& request, std::string_view compiler) {
  CacheKey key;
  key.fields = {
      {"format", std::to_string(cache_format)},
      {"generator", std::string(generator_hash())},
      {"arch", request.arch},
      {"options", options_text(request.options)},
      {"variables", fmt::format("{}", fmt::join(request.options.environment.compiler_variables, "\n"))},
      {"compiler", std::string(compiler)},
      {"overrides", fmt::format("{}", fmt::join(request.overrides, "\n"))},
      {"spec", request.spec},
  };
  if (!request.chip.empty()) key.fields.emplace_back("chip", request.chip); // entries of the largest chip are as old as the architecture's
  if (request.batch_invariant)
    key.fields.emplace_back("batch_invariant", "1"); // in older entries, of kernels that are not, it is not there
  key.hex = digest_of(key.fields);
  return key;
}

} // namespace kiln

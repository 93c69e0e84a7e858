// KernelChoice: NAME|FILE and the options of the catalogue, as the command line gives them.
#include "runtime/cli/kernel_choice.h"
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "runtime/cli/output.h"
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cli {
namespace {

bool in_catalog(const std::string& name) {
  return std::ranges::any_of(catalog(), [&](const CatalogEntry& entry) { return entry.name == name; });
}

DType dtype_option(const std::string& option, const std::string& word, const Target& target) {
  if (const std::optional<DType> type = parse_dtype(word, target)) return *type;
  std::vector<std::string_view> names{"fp8"};
  for (const DType type : all_dtypes()) names.push_back(to_string(type));
  throw UserError(option, fmt::format("\"{}\" is no type", word), fmt::format("use one of {}", fmt::join(names, ", ")));
}

CatalogOptions catalog_options(const KernelChoice& choice, const Target& target) {
  CatalogOptions options;
  if (choice.cols) options.cols = *choice.cols;
  if (choice.max_rows) options.max_rows = *choice.max_rows;
  if (choice.group) options.group = *choice.group;
  if (choice.m) options.m = *choice.m;
  if (choice.n) options.n = *choice.n;
  if (choice.k) options.k = *choice.k;
  if (choice.dtype) options.dtype = dtype_option("--dtype", *choice.dtype, target);
  options.fp8 = choice.fp8 ? dtype_option("--fp8", *choice.fp8, target) : target.fp8();
  if (choice.mx) options.mx = dtype_option("--mx", *choice.mx, target);
  options.dynamic_scale = choice.dynamic_scale;
  options.in_place = choice.in_place;
  options.preshuffled = choice.preshuffled;
  options.packed_zeros = choice.packed_zeros;
  options.transposed = choice.transposed;
  if (choice.heads) options.heads = *choice.heads;
  if (choice.top) options.top = *choice.top;
  options.sigmoid = choice.sigmoid;
  options.sorted = choice.sorted;
  if (choice.experts) options.experts = *choice.experts;
  if (choice.weights) options.weights = dtype_option("--weights", *choice.weights, target);
  if (choice.index) options.index = dtype_option("--index", *choice.index, target);
  if (choice.kv_heads) options.kv_heads = *choice.kv_heads;
  if (choice.d) options.d = *choice.d;
  if (choice.length) options.length = *choice.length;
  if (choice.page) options.page = *choice.page;
  if (choice.cache_dtype) options.cache = dtype_option("--cache-dtype", *choice.cache_dtype, target);
  options.interleaved = choice.interleaved;
  options.head_norm = choice.head_norm;
  options.fp8_cache = choice.fp8_cache;
  return options;
}

KernelSpec spec_of_file(const KernelChoice& choice) {
  if (choice.cols || choice.max_rows || choice.group || choice.m || choice.n || choice.k || choice.dtype || choice.fp8 || choice.mx ||
      choice.dynamic_scale || choice.in_place || choice.preshuffled || choice.packed_zeros || choice.transposed || choice.heads ||
      choice.kv_heads || choice.d || choice.length || choice.page || choice.cache_dtype || choice.top || choice.experts || choice.weights ||
      choice.sigmoid || choice.sorted || choice.index || choice.interleaved || choice.head_norm || choice.fp8_cache) {
    throw UserError(choice.kernel, "options of the catalogue were given beside a file",
                    "change the text of the file, or name an entry of the catalogue (kiln list)");
  }
  try {
    return parse_spec(read_file(choice.kernel));
  } catch (const UserError& error) {
    if (error.subject == choice.kernel) throw;
    throw UserError(fmt::format("{}: {}", choice.kernel, error.subject), error.fact, error.remedy);
  }
}

} // namespace

void add_kernel_options(CLI::App& app, KernelChoice& choice) {
  app.add_option("kernel", choice.kernel, "A name of the catalogue (kiln list), or a file with the text of a spec")->required();
  app.add_option("--cols", choice.cols, "Columns of a row (4096)");
  app.add_option("--max-rows", choice.max_rows,
                 "Row entries: the most rows of a launch (any); of few rows each may take several workgroups");
  app.add_option("--m", choice.m, "Gemm entries: the most rows of a (16)");
  app.add_option("--n", choice.n, "Gemm entries: rows of b (4096)");
  app.add_option("--k", choice.k, "Gemm entries: columns of a and b (4096)");
  app.add_option(
      "--dtype", choice.dtype,
      "Type of activations and weights: f16, bf16 or f32 (f16); of gemm entries also i8 or an fp8 type; fp8 is the target's own");
  app.add_option("--fp8", choice.fp8, "Type of quantised values (the target's own e4m3)");
  app.add_option("--mx", choice.mx, "Elements of MX formats: e2m1 (MXFP4), e4m3fn or e5m2 (MXFP8) (e2m1)");
  app.add_option("--group", choice.group, "Elements that share a scale, of group_quant, group_dequant and gemm_w4a16 (128)");
  app.add_flag("--dynamic-scale", choice.dynamic_scale, "add_rmsnorm_quant: compute one scale a token");
  app.add_flag("--preshuffled", choice.preshuffled, "Gemm entries: b is preshuffled (docs/gemm.md)");
  app.add_flag("--packed-zeros", choice.packed_zeros, "gemm_w4a16: zero points of 4 bits, eight in a word in the order of columns");
  app.add_flag("--transposed", choice.transposed, "group_quant and MX quantisation: scales lie [groups, rows], groups in front");
  app.add_flag("--in-place", choice.in_place,
               "add_rmsnorm_quant: the new residual overwrites the old; rope, qk_norm: outputs overwrite inputs");
  app.add_option("--heads", choice.heads, "Rope entries: heads, of --cols columns each; attention entries: heads of q (8)");
  app.add_option("--kv-heads", choice.kv_heads, "Attention entries and qk_norm: heads of keys and values (8)");
  app.add_option("--d", choice.d, "Attention entries: elements of a head; 576: one of MLA, whose values are its first 512 (128)");
  app.add_option("--length", choice.length, "Attention entries: keys that a sequence has room for (8192)");
  app.add_option("--page", choice.page, "attention_paged: keys of a page (16)");
  app.add_option("--cache-dtype", choice.cache_dtype, "Attention entries: type of keys and values: --dtype, an fp8 or i8 (--dtype)");
  app.add_option("--top", choice.top, "Router and expert entries: how many experts a token has, 1 to 16 (8)");
  app.add_flag("--sigmoid", choice.sigmoid, "Router entries: scores by sigmoid, with a bias for the choice");
  app.add_flag("--sorted", choice.sorted, "router: pairs of tokens and experts sorted by expert too");
  app.add_option("--experts", choice.experts, "Expert entries: how many there are, 1 to 1024 (64)");
  app.add_option("--weights", choice.weights, "Expert products: e2m1 for MXFP4 weights (--dtype)");
  app.add_option("--index", choice.index, "Type of ids, positions and slots: i64 or i32 (i64)");
  app.add_flag("--interleaved", choice.interleaved, "Rope entries: pairs are neighbours, not halves of a head");
  app.add_flag("--head-norm", choice.head_norm, "Rope entries: an RMS norm of each head first");
  app.add_flag("--fp8-cache", choice.fp8_cache, "rope_kv_write: the cache is of type --fp8");
}

KernelSpec chosen_spec(const KernelChoice& choice, const Target& target) {
  std::error_code error;
  if (!in_catalog(choice.kernel) && std::filesystem::exists(choice.kernel, error)) return spec_of_file(choice);
  if (choice.kernel.find_first_of("/.") != std::string::npos) // no name of the catalogue has these
    throw UserError(fmt::format("file '{}'", choice.kernel), "it does not exist",
                    "name a file with the text of a spec, or an entry of kiln list");
  return catalog_spec(choice.kernel, catalog_options(choice, target));
}

std::map<std::string, std::int64_t> named_sizes(const std::vector<std::string>& settings, const KernelSpec& spec) {
  std::map<std::string, std::int64_t> sizes;
  for (const std::string& setting : settings) {
    const auto subject = fmt::format("--size {}", setting);
    const std::size_t equals = setting.find('=');
    std::int64_t size = 0;
    const char* const end = setting.data() + setting.size();
    if (equals == std::string::npos) throw UserError(subject, "it has no '='", "write NAME=SIZE, as in m=8");
    if (const auto [stop, error] = std::from_chars(setting.data() + equals + 1, end, size); error != std::errc{} || stop != end)
      throw UserError(subject, fmt::format("'{}' is no whole number", setting.substr(equals + 1)), "write NAME=SIZE, as in m=8");
    std::vector<std::string> names;
    for (const Dim& dim : spec.dynamic_dims()) names.push_back(dim.name());
    if (std::ranges::find(names, setting.substr(0, equals)) == names.end())
      throw UserError(subject, fmt::format("'{}' has no such run-time size", spec.name()),
                      fmt::format("use one of {}", fmt::join(names, ", ")));
    sizes[setting.substr(0, equals)] = size;
  }
  return sizes;
}

} // namespace kiln::cli

// CatalogOption: the table of options, values from text, and which entries take which.
#include "gen/catalog/options.h"
#include "gen/error.h"
#include "gen/spec/characters.h"
#include "gen/spec/names.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

using O = CatalogOptions;

constexpr CatalogOption table[] = {
    {"cols", &O::cols, "Columns of a row (4096)"},
    {"max_rows", &O::max_rows, "Row entries: the most rows of a launch (any); of few rows each may take several workgroups"},
    {"m", &O::m, "Gemm entries: the most rows of a (16)"},
    {"n", &O::n, "Gemm entries: rows of b (4096)"},
    {"k", &O::k, "Gemm entries: columns of a and b (4096)"},
    {"dtype", &O::dtype,
     "Type of activations and weights: f16, bf16 or f32 (f16); of gemm entries also i8 or an fp8 type; fp8 is the target's own"},
    {"fp8", &O::fp8, "Type of quantised values (the target's own e4m3)"},
    {"mx", &O::mx, "Elements of MX formats: e2m1 (MXFP4), e4m3fn or e5m2 (MXFP8) (e2m1)"},
    {"group", &O::group, "Elements that share a scale, of group_quant, group_dequant and gemm_w4a16; hadamard: columns of a block (128)"},
    {"side", &O::side, "sinkhorn: rows and columns of each matrix: 2, 4, 8 or 16 (4)"},
    {"times", &O::times, "sinkhorn: how often rows and columns are normalised, 1 to 64 (20)"},
    {"dynamic_scale", &O::dynamic_scale, "add_rmsnorm_quant: compute one scale a token"},
    {"preshuffled", &O::preshuffled, "Gemm entries: b is preshuffled (docs/gemm.md)"},
    {"packed_zeros", &O::packed_zeros, "gemm_w4a16: zero points of 4 bits, eight in a word in the order of columns"},
    {"transposed", &O::transposed, "group_quant, MX quantisation, a of gemm_block_scaled and gemm_mx: scales lie [groups, rows]"},
    {"in_place", &O::in_place, "add_rmsnorm_quant: the new residual overwrites the old; rope, qk_norm, hadamard: outputs overwrite inputs"},
    {"heads", &O::heads, "Rope entries: heads, of --cols columns each; attention entries: heads of q (8)"},
    {"kv_heads", &O::kv_heads, "Attention entries and qk_norm: heads of keys and values (8)"},
    {"d", &O::d, "Attention entries: elements of a head; 576: one of MLA, whose values are its first 512 (128)"},
    {"length", &O::length, "Attention entries: keys that a sequence has room for (8192)"},
    {"page", &O::page, "attention_paged: keys of a page (16)"},
    {"cache_dtype", &O::cache, "Attention entries: type of keys and values: --dtype, an fp8 or i8 (--dtype)"},
    {"top", &O::top, "Router and expert entries: how many experts a token has, 1 to 16 (8)"},
    {"sigmoid", &O::sigmoid, "Router entries: scores by sigmoid, with a bias for the choice"},
    {"sorted", &O::sorted, "router: pairs of tokens and experts sorted by expert too"},
    {"experts", &O::experts, "Expert entries, and adapters of lora entries: how many there are, 1 to 1024 (64)"},
    {"rank", &O::rank, "Lora entries: rows of a and columns of b, 8 to 64 (16)"},
    {"weights", &O::weights, "Expert products and gemm_mx: the type of b, as e2m1 for MXFP4 weights (that of a)"},
    {"index", &O::index, "Type of ids, positions and slots: i64 or i32 (i64)"},
    {"state", &O::state, "Recurrent entries: type of the state, f32, bf16, f16 or an fp8 (f32)"},
    {"tokens", &O::tokens, "State entries: tokens of a sequence, 1 to 8; several keep the state behind each (1)"},
    {"width", &O::width, "conv1d_update: tokens of the window, 3 to 8 (4)"},
    {"per_channel", &O::per_channel, "gated_delta_update: a gate for each column of a head, as in KDA"},
    {"gate_first", &O::gate_first, "gated_norm: x * silu(gate) is normed"},
    {"interleaved", &O::interleaved, "Rope entries: pairs are neighbours, not halves of a head"},
    {"head_norm", &O::head_norm, "Rope entries: an RMS norm of each head first"},
    {"fp8_cache", &O::fp8_cache, "rope_kv_write: the cache is of type --fp8"},
};

bool takes(const CatalogEntry& entry, const CatalogOption& option) {
  return fmt::format(" {} ", entry.options).find(fmt::format(" {} ", option.name)) != std::string::npos;
}

} // namespace

std::span<const CatalogOption> all_catalog_options() { return table; }

const CatalogOption* find_catalog_option(std::string_view name) {
  const CatalogOption* const option = std::ranges::find(table, name, &CatalogOption::name);
  return option == std::end(table) ? nullptr : option;
}

void set_catalog_option(O& options, const CatalogOption& option, const std::string& value, const Target& target,
                        const RefuseValue& refuse) {
  if (const auto* const number = std::get_if<std::int64_t O::*>(&option.place)) {
    if (!read_whole(value, options.**number)) refuse(fmt::format("\"{}\", which is no whole number", value), "give a whole number");
  } else if (const auto* const flag = std::get_if<bool O::*>(&option.place)) {
    if (value != "true" && value != "false") refuse(fmt::format("\"{}\", which is neither true nor false", value), "give true or false");
    options.** flag = value == "true";
  } else {
    const std::optional<DType> type = parse_dtype(value, target);
    std::vector<std::string_view> names{"fp8"};
    for (const DType each : all_dtypes()) names.push_back(to_string(each));
    if (!type) refuse(fmt::format("\"{}\", which is no type", value), did_you_mean(value, names));
    options.*std::get<DType O::*>(option.place) = *type;
  }
}

std::vector<const CatalogOption*> options_of(const CatalogEntry& entry) {
  std::vector<const CatalogOption*> taken;
  for (const CatalogOption& option : table)
    if (takes(entry, option)) taken.push_back(&option);
  return taken;
}

void require_option_of(std::string_view name, const CatalogOption& option) {
  const auto entry = std::ranges::find(catalog(), name, &CatalogEntry::name);
  if (entry == catalog().end()) return;
  if (takes(*entry, option)) return;
  std::vector<std::string_view> names;
  for (const CatalogOption* each : options_of(*entry)) names.push_back(each->name);
  throw UserError(fmt::format("catalogue entry '{}'", name), fmt::format("it has no option {}", option.name),
                  fmt::format("leave it out; it takes {}", fmt::join(names, ", ")));
}

} // namespace kiln

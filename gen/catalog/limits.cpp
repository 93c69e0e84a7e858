// What the options of a catalogue entry may be.
#include "gen/catalog/entries.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

using Why = std::optional<Refusal>;

Why refusal(const CatalogEntry& entry, std::string fact, std::string remedy) {
  return Refusal{fmt::format("catalogue entry '{}'", entry.name), std::move(fact), std::move(remedy)};
}

struct Range {
  std::string_view what;
  std::int64_t value, least, most;
};
Why out_of(const CatalogEntry& entry, std::initializer_list<Range> ranges) {
  for (const auto& [what, value, least, most] : ranges)
    if (value < least || value > most)
      return refusal(entry, fmt::format("{} is {}", what, value),
                     fmt::format("use {} to {}{}", std::max<std::int64_t>(least, 1), most, least ? "" : ", or leave it out"));
  return {};
}

// What routers and experts choose among, and how many of it.
Why why_no_choice(const CatalogEntry& entry, const CatalogOptions& o) {
  const auto top_of = [&](std::int64_t experts) -> Why {
    const std::int64_t most = std::min(max_wave_ranks, experts);
    if (o.top >= 1 && o.top <= most) return {};
    return refusal(entry, fmt::format("top is {} of {}", o.top, experts), fmt::format("use 1 to {}", most));
  };
  if (entry.is.ranked) {
    const std::int64_t experts = entry.is.gemm ? o.n : o.cols;
    if (experts > max_wave_columns)
      return refusal(entry, fmt::format("{} is {}", entry.is.gemm ? "n" : "cols", experts),
                     fmt::format("use 1 to {} experts", max_wave_columns));
    if (auto why = top_of(experts)) return why;
  }
  if (!entry.is.experts) return {};
  if (auto why = out_of(entry, {{"experts", o.experts, 1, max_experts}})) return why;
  if (auto why = top_of(o.experts)) return why;
  if (o.weights == f32 || o.weights == e2m1) return {};
  return refusal(entry, fmt::format("weights is {}", to_string(o.weights)), "use e2m1, or leave it out");
}

Why why_no_rows(const CatalogEntry& entry, const CatalogOptions& o) {
  const auto of_type = [&](std::string_view what, DType type, const char* remedy) {
    return refusal(entry, fmt::format("{} is {}", what, to_string(type)), remedy);
  };
  if (auto why = out_of(entry, {{"cols", o.cols, 1, max_dim_size}, {"max_rows", o.max_rows, 0, max_dim_size}})) return why;
  if (o.dtype != f32 && o.dtype != f16 && o.dtype != bf16) return of_type("dtype", o.dtype, "use f32, f16 or bf16");
  if (o.index != i32 && o.index != i64) return of_type("index", o.index, "use i32 or i64");
  if (entry.is.rope) {
    if (auto why = out_of(entry, {{"heads", o.heads, 1, max_dim_size}, {"kv_heads", o.kv_heads, 1, max_dim_size}})) return why;
    if (o.cols % 2) return refusal(entry, fmt::format("cols is {}", o.cols), "use an even number: rotary embedding turns pairs of columns");
  }
  const std::string subject = fmt::format("catalogue entry '{}'", entry.name);
  if (entry.is.state)
    if (auto why = why_no_state(subject, o)) return why;
  if (entry.is.blocks)
    if (auto why = why_no_blocks_of_hadamard(subject, o)) return why;
  if (entry.is.matrices)
    if (auto why = why_no_matrices_of_sinkhorn(subject, o)) return why;
  return is_fp8(o.fp8) ? Why() : of_type("fp8", o.fp8, "use e4m3fn, e4m3fnuz, e5m2 or e5m2fnuz");
}

} // namespace

std::optional<Refusal> why_not(const CatalogEntry& entry, const CatalogOptions& o) {
  if (const std::int64_t size = entry.is.gemm ? o.k : o.cols; entry.is.mx && size % mx_block)
    return refusal(entry, fmt::format("{} is {}", entry.is.gemm ? "k" : "cols", size),
                   fmt::format("use a multiple of {}, the elements of an MX block", mx_block));
  if (entry.is.mx && !is_mx_element(o.mx)) return refusal(entry, fmt::format("mx is {}", to_string(o.mx)), "use e2m1, e4m3fn or e5m2");
  if (auto why = why_no_choice(entry, o)) return why;
  if (entry.is.lora)
    if (auto why = out_of(entry, {{"rank", o.rank, 8, 64}, {"experts", o.experts, 1, max_experts}})) return why;
  if (entry.is.lora && o.rank % 8) return refusal(entry, fmt::format("rank is {}", o.rank), "use a multiple of 8: 16 bytes of a row");
  if (entry.is.gemm) {
    if (auto why = out_of(entry, {{"m", o.m, 1, 128}, {"n", o.n, 1, 1 << 24}, {"k", o.k, 1, 1 << 24}})) return why;
    if (is_float(o.dtype) || o.dtype == i8) return {};
    return refusal(entry, fmt::format("dtype is {}", to_string(o.dtype)), "use f16, bf16, an fp8 or i8");
  }
  if (entry.is.attention)
    return out_of(entry, {{"heads", o.heads, 1, 1024},
                          {"kv_heads", o.kv_heads, 1, 1024},
                          {"d", o.d, 1, 576},
                          {"page", o.page, 1, 65536},
                          {"length", o.length, 1, max_dim_size - 65536}});
  return why_no_rows(entry, o);
}

} // namespace kiln

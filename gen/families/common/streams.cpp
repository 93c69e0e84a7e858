// Streams: widths, registers and promises of tensors that are streamed through lanes.
#include "gen/families/common/streams.h"
#include <algorithm>

namespace kiln {
namespace {

bool uses(const Body& body, Op op) {
  return std::ranges::any_of(body.values, [op](const Value& v) { return v.expr.op() == op; });
}

bool converts_vectors_to(const Body& body, DType type) {
  return std::ranges::any_of(
      body.values, [type](const Value& v) { return v.expr.op() == Op::cast && v.expr.dtype() == type && v.extent == Extent::element; });
}

// What a scatter writes, nobody reads.
bool is_target(const Body& body, const TensorPlan& input) {
  return std::ranges::any_of(body.tensors, [&](const TensorPlan& t) { return !t.row_index.empty() && t.in_place_of == input.name; });
}

// Bytes that a lane loads of a stream at a time: fewer than a chunk if elements are repeated.
int loaded_bytes(const Value& value, int vec) {
  const auto view = view_of(value.expr);
  const int repeat = view ? static_cast<int>(view->repeat) : 1;
  return std::max(1, vec / repeat) * size_bytes(value.expr.dtype());
}

} // namespace

int preferred_vec(const Body& body) {
  int narrowest = 0, widest = 0;
  for (const bool output : {false, true}) {
    for (const TensorPlan& t : body.tensors) {
      if (t.output != output || t.extent != Extent::element || is_target(body, t)) continue;
      narrowest = narrowest ? std::min(narrowest, size_bytes(t.dtype)) : size_bytes(t.dtype);
      widest = std::max(widest, size_bytes(t.dtype));
    }
    if (narrowest) return std::min(16 / narrowest, 32 / widest);
  }
  return 4;
}

int widest_stream(const Body& body, const std::vector<Pass>& passes, int vec) {
  int widest = 1;
  for (const Pass& pass : passes) {
    int registers = 0;
    for (const int index : pass.streams) registers += chunk_registers(body.value(index), vec);
    widest = std::max(widest, registers);
  }
  return widest;
}

Promises stream_promises(const Body& body, const std::vector<Pass>& passes, const StreamedChunks& chunks, const Target& target) {
  Promises p{.max_vgprs = vgprs_of_four_waves, .global_loads = {.min_bytes = 16}};
  // All loads are as wide as the narrowest streamed tensor's, except for single values of rows and groups and for ends.
  for (const Pass& pass : passes)
    for (const int index : pass.streams) {
      p.global_loads.min_bytes = std::min(p.global_loads.min_bytes, loaded_bytes(body.value(index), chunks.vec));
      if (chunks.ends) p.global_loads.exceptions += static_cast<std::uint32_t>(chunks.vec);
    }
  for (const TensorPlan& t : body.tensors)
    if (!t.output && t.extent != Extent::element && !is_target(body, t))
      p.global_loads.exceptions +=
          t.extent == Extent::group ? static_cast<std::uint32_t>(chunks.in_code) * static_cast<std::uint32_t>(passes.size()) : 1;
  // A division is a product with v_rcp_f32, unless the spec asks for the IEEE one, or a mean divides by the size of a last group.
  if (!uses(body, Op::div_exact) && !uses(body, Op::group_mean)) p.forbidden.emplace_back("v_div_");
  if (converts_vectors_to(body, target.fp8_e4m3())) p.required.emplace_back("v_cvt_pk_fp8_f32");
  if (converts_vectors_to(body, target.fp8_e5m2())) p.required.emplace_back("v_cvt_pk_bf8_f32");
  return p;
}

} // namespace kiln

// Streams: widths, registers and promises of tensors that are streamed through lanes.
#include "gen/families/common/streams.h"
#include <algorithm>
#include <unordered_set>

namespace kiln {
namespace {

constexpr int max_vec = 16;               // of RowwiseConfig and ElementwiseConfig
constexpr double convert_slots = 0.5;     // of an element: packed conversions, and those that a mixed fma does
constexpr double round_to_bf16_slots = 4; // of an element without an instruction for it: gfx942
constexpr double exchange_slots = 1;      // of an element that another lane has; a stage in two steps is rare
constexpr double loop_slots = 4;          // of a pass and chunk: waits, addresses, a branch

bool uses(const Body& body, Op op) {
  return std::ranges::any_of(body.values, [op](const Value& v) { return v.expr.op() == op; });
}

// With a scale of each block, or without one.
bool converts_vectors_to(const Body& body, DType type, bool scaled = false) {
  return std::ranges::any_of(body.values, [&](const Value& v) {
    if (v.expr.op() != Op::cast || v.expr.dtype() != type || v.extent != Extent::element) return false;
    const Expr& from = v.expr.operands()[0];
    return scaled == (from.op() == Op::scale_down && body.value(from.operands()[1]).extent != Extent::element);
  });
}

// What a scatter writes and no gather reads.
bool is_target(const Body& body, const TensorPlan& input) {
  const auto reads = [&](const Value& v) {
    const auto view = v.uses > 0 ? view_of(v.expr) : std::nullopt;
    return view && view->tensor == input.name;
  };
  return std::ranges::none_of(body.values, reads) &&
         std::ranges::any_of(body.tensors, [&](const TensorPlan& t) { return !t.row_index.empty() && t.in_place_of == input.name; });
}

// Marks the operands without which `expr` is another number. LLVM leaves out what it proves to be of no use, which takes it nothing where
// integers are computed, conditions are combined, a number is compared with itself, or both branches are alike.
void mark_operands(const Body& body, const Expr& expr, std::vector<bool>& needed) {
  const OpKind kind = info(expr.op()).kind;
  const auto operands = expr.operands();
  const auto mark = [&](const Expr& operand) { needed[static_cast<std::size_t>(body.index_of(operand))] = true; };
  const auto is_certain = [](const Expr& condition) {
    return info(condition.op()).kind != OpKind::logic &&
           (info(condition.op()).kind != OpKind::compare || !condition.operands()[0].same_node(condition.operands()[1]));
  };
  if (kind == OpKind::integer || kind == OpKind::logic || (kind == OpKind::pointwise && expr.dtype() == i32) || !is_certain(expr)) return;
  if (kind == OpKind::select) {
    if (operands[1].same_node(operands[2])) return mark(operands[1]);
    if (!is_certain(operands[0])) return;
  }
  for (const Expr& operand : operands) mark(operand);
}

// Inputs that an output cannot do without. One that is written over with itself needs no load.
std::unordered_set<std::string> needed_inputs(const Body& body) {
  std::vector<bool> needed(body.values.size());
  for (const Output& output : body.outputs) {
    const bool is_itself = output.value.op() == Op::input && output.value->name == output.in_place_of;
    if (!is_itself) needed[static_cast<std::size_t>(body.index_of(output.value))] = true;
  }
  std::unordered_set<std::string> names;
  for (std::size_t i = body.values.size(); i-- > 0;) {
    if (!needed[i]) continue;
    const Expr& expr = body.values[i].expr;
    if (expr.op() == Op::input) names.insert(expr->name);
    mark_operands(body, expr, needed);
  }
  return names;
}

// Bytes that a lane loads of a stream at a time: fewer than a chunk if elements are repeated.
int loaded_bytes(const Value& value, int vec) {
  const auto view = view_of(value.expr);
  const int repeat = view ? static_cast<int>(view->repeat) : 1;
  return static_cast<int>(storage_bytes(value.expr.dtype(), std::max(1, vec / repeat)));
}

} // namespace

int preferred_vec(const Body& body) {
  int narrowest = 0, widest = 0;
  for (const bool output : {false, true}) {
    for (const TensorPlan& t : body.tensors) {
      if (t.output != output || t.extent != Extent::element || is_target(body, t)) continue;
      narrowest = narrowest ? std::min(narrowest, size_bits(t.dtype)) : size_bits(t.dtype);
      widest = std::max(widest, size_bits(t.dtype));
    }
    if (narrowest) return std::min({max_vec, 128 / narrowest, 256 / widest});
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

ChunkWork chunk_work(const Body& body, const std::vector<Pass>& passes, int vec, const Target& target) {
  ChunkWork w;
  double an_element = 0;
  std::unordered_set<int> loaded;
  for (const Pass& pass : passes) {
    double bytes = 0;
    for (const int index : pass.streams) {
      const Value& value = body.value(index);
      const auto view = view_of(value.expr); // a row by index, or other columns of a row that may be loaded already
      const bool by_index = view && !view->index.empty();
      const int size = loaded_bytes(value, vec);
      const bool own_rows = by_index || (!view && body.tensor(value.expr->name).covers_rows());
      bytes += size;
      const bool first = loaded.insert(index).second;
      (first && own_rows ? w.far_bytes : w.near_bytes) += size;
      if (!first && own_rows) w.again_bytes += size;
      w.loads += ceil_div(size, 16);
      if (value.expr.dtype() != f32) an_element += convert_slots;
    }
    w.in_flight = std::max(w.in_flight, bytes);
    w.instructions += loop_slots;
  }
  for (const TensorPlan& t : body.tensors)
    if (t.output && t.extent == Extent::element) {
      const int bytes = static_cast<int>(storage_bytes(t.dtype, vec));
      w.written += bytes;
      w.stores += ceil_div(bytes, 16);
      if (t.dtype == bf16 && !target.has_dot2_bf16()) an_element += round_to_bf16_slots;
    }
  for (const Value& v : body.values)
    if (v.extent == Extent::element) an_element += pairs_in_wave(v.expr) && v.expr->step >= vec ? exchange_slots : info(v.expr.op()).cost;
  w.instructions += vec * an_element + w.loads + w.stores;
  return w;
}

double workgroups_per_cu(int waves, int vgprs, int lds_bytes, const Target& target) {
  const int waves_a_simd = std::clamp(max_vgprs / ceil_div(vgprs, vgpr_granule) / vgpr_granule, 1, max_waves_per_simd);
  const int by_waves = simds_per_cu * waves_a_simd / waves;
  return std::max(1, lds_bytes > 0 ? std::min(by_waves, target.lds_bytes() / lds_bytes) : by_waves);
}

Promises stream_promises(const Body& body, const std::vector<Pass>& passes, const StreamedChunks& chunks, const Target& target) {
  Promises p = promises_of_all();
  p.max_vgprs = vgprs_of_four_waves;
  p.max_lds_bytes = 0;
  p.global_loads.min_bytes = 16;
  // All loads are as wide as the narrowest streamed tensor's, except for single values of rows and groups and for ends.
  for (const Pass& pass : passes)
    for (const int index : pass.streams) {
      p.global_loads.min_bytes = std::min(p.global_loads.min_bytes, loaded_bytes(body.value(index), chunks.vec));
      p.global_loads.exceptions += static_cast<std::uint32_t>(chunks.narrow);
    }
  for (const TensorPlan& t : body.tensors)
    if (!t.output && t.extent != Extent::element && !is_target(body, t))
      p.global_loads.exceptions +=
          t.extent == Extent::group ? static_cast<std::uint32_t>(chunks.in_code) * static_cast<std::uint32_t>(passes.size()) : 1;
  // Each tensor of elements that is needed is loaded once at the least; rows that are shorter than a chunk may come by single
  // elements, and a single column, or a row that one lane has, by a scalar load.
  const std::unordered_set<std::string> needed = needed_inputs(body);
  if (chunks.narrow < chunks.vec && chunks.vec > 1)
    p.global_loads.at_least = static_cast<std::uint32_t>(std::ranges::count_if(body.tensors, [&](const TensorPlan& t) {
      const bool in_one_lane = (t.columns ? t.columns : body.cols) <= chunks.vec && body.cols > 0;
      return !t.output && t.extent == Extent::element && !in_one_lane && !is_target(body, t) && needed.contains(t.name);
    }));
  // A division is a product with v_rcp_f32, unless the spec asks for the IEEE one, or a mean divides by the size of a last group.
  if (!uses(body, Op::div_exact) && !uses(body, Op::group_mean)) p.forbidden.emplace_back("v_div_");
  if (converts_vectors_to(body, target.fp8_e4m3())) p.required.emplace_back("v_cvt_pk_fp8_f32");
  if (converts_vectors_to(body, target.fp8_e5m2())) p.required.emplace_back("v_cvt_pk_bf8_f32");
  if (target.has_scaled_convert())
    for (const auto& [type, instruction] : {std::pair{e2m1, "v_cvt_scalef32_pk_fp4_f32"}, std::pair{e4m3fn, "v_cvt_scalef32_pk_fp8_f32"},
                                            std::pair{e5m2, "v_cvt_scalef32_pk_bf8_f32"}})
      if (converts_vectors_to(body, type, true)) p.required.emplace_back(instruction);
  return p;
}

} // namespace kiln

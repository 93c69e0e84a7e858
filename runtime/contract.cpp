// The ISA contract of a generated kernel.
#include "runtime/contract.h"
#include "gen/passes.h"
#include <algorithm>

namespace kiln {
namespace {

constexpr int max_vgprs = 128; // four waves a SIMD: the least with which a memory-bound kernel hides its own latency

// Loads of full and column tensors: how many there are in the code, and how wide the narrowest is.
isa::WidthExpectation stream_loads(const Plan& plan, const Schedule& schedule) {
  const bool rows = schedule.family == Family::rowwise;
  const RowwiseConfig& r = schedule.rowwise;
  const int vec = rows ? r.vec : schedule.elementwise.vec;
  int chunks = !rows ? schedule.elementwise.chunks : r.unrolled() ? r.chunks() : r.ahead;
  // A last chunk in which no lane has all elements has no wide access at all.
  if (rows && r.ragged() && r.unrolled() && r.cols - (r.chunks() - 1) * r.threads_per_row * r.vec < r.vec) --chunks;
  isa::WidthExpectation loads{.min_bytes = 16};
  for (const Pass& pass : split_passes(plan, rows ? r.residency : Residency::registers))
    for (const int index : pass.streams) {
      const int bytes = vec * size_bytes(plan.values[static_cast<std::size_t>(index)].expr.dtype());
      loads.min_bytes = std::min(loads.min_bytes, bytes);
      loads.at_least += static_cast<std::uint32_t>(chunks * std::max(1, bytes / 16));
    }
  if (loads.at_least == 0) return {};
  // Everything narrower: scalars, rows' and groups' values, the ends of ragged rows.
  loads.exceptions = ~std::uint32_t{0};
  return loads;
}

bool uses(const Plan& plan, Op op) {
  return std::ranges::any_of(plan.values, [op](const Value& v) { return v.expr.op() == op; });
}

bool stores_vectors_of(const Plan& plan, DType type) {
  return std::ranges::any_of(plan.values, [type](const Value& v) {
    return v.expr.op() == Op::cast && v.expr.dtype() == type && v.extent == Extent::element;
  });
}

} // namespace

isa::Expectations contract(const Plan& plan, const Schedule& schedule, const Target& target) {
  isa::Expectations e{.no_scratch = true, .no_spills = true, .max_vgprs = max_vgprs, .max_lds_bytes = lds_bytes(plan, schedule)};
  e.global_loads = stream_loads(plan, schedule);
  e.forbidden = {"flat_", "ds_bpermute", "ds_permute"};
  const bool divides = uses(plan, Op::div_exact) || (uses(plan, Op::group_mean) && schedule.family == Family::rowwise);
  if (!divides) e.forbidden.emplace_back("v_div_");
  if (stores_vectors_of(plan, target.fp8_e4m3())) e.required.emplace_back("v_cvt_pk_fp8_f32");
  if (stores_vectors_of(plan, target.fp8_e5m2())) e.required.emplace_back("v_cvt_pk_bf8_f32");
  return e;
}

} // namespace kiln

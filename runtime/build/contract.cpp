// The ISA contract of a generated kernel.
#include "runtime/build/contract.h"
#include "gen/families/gemm_schedule.h"
#include "gen/plan/passes.h"
#include <algorithm>

namespace kiln {
namespace {

constexpr int vgprs_of_four_waves = max_vgprs / 4; // a SIMD: the least with which a memory-bound kernel hides its own latency

// All loads are as wide as the narrowest full or column tensor's, but for single values of rows and groups and the ends of
// rows (or of a flat tensor) that are no multiple of the vector.
isa::WidthExpectation wide_loads(const Plan& plan, const Schedule& schedule) {
  const bool rows = schedule.family == Family::rowwise;
  const RowwiseConfig& r = schedule.rowwise;
  const int vec = rows ? r.vec : schedule.elementwise.vec;
  const bool ends = rows ? r.ragged() : !schedule.elementwise.exact;
  const int chunks_in_code = !rows ? 1 : r.unrolled() ? r.chunks() : std::min(r.chunks(), 3 * r.ahead);
  isa::WidthExpectation loads{.min_bytes = 16};
  const std::vector<Pass> passes = split_passes(plan, rows ? r.residency : Residency::registers);
  for (const Pass& pass : passes)
    for (const int index : pass.streams) {
      loads.min_bytes = std::min(loads.min_bytes, vec * size_bytes(plan.values[static_cast<std::size_t>(index)].expr.dtype()));
      if (ends) loads.exceptions += static_cast<std::uint32_t>(vec);
    }
  for (const TensorPlan& t : plan.tensors)
    if (!t.output && t.extent != Extent::element)
      loads.exceptions +=
          t.extent == Extent::group ? static_cast<std::uint32_t>(chunks_in_code) * static_cast<std::uint32_t>(passes.size()) : 1;
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

// What the waves that load B keep in flight, and that LDS passes whole words on. Flags and sums are the other accesses to LDS.
isa::Expectations with_producers_contract(isa::Expectations e, const SkinnyGemmConfig& c) {
  const char* const fills = c.direct ? "global_load_lds_dwordx4" : "ds_write_b128";
  e.required = {"v_mfma_", "ds_read_b128", "s_sleep", fills};
  e.global_loads.at_least = static_cast<std::uint32_t>(c.b_loads()); // the rest of the ring may be issued by a loop
  e.lds.min_bytes = 16;
  // Of a row that ends within the only step, words of A that are all beyond its end need not be read.
  const int used = std::min(c.loads, ceil_div(c.row_bytes(), c.step_bytes() / c.loads));
  e.lds.at_least = static_cast<std::uint32_t>(c.b_loads() + c.a_loads() / c.loads * used);
  const int sums = c.summing_waves() * c.chunks() * c.products * c.vec + c.products * c.tile_n / 16 * c.row_tiles() * 4;
  e.lds.exceptions = static_cast<std::uint32_t>(sums + 8 * (c.ring + c.a_ring() + 4));
  // The waves that load never have less in flight than all of their ring but one step. A tile that is loaded at once has no loop.
  if (c.steps_per_tile() <= std::max(c.ring * c.b_producers, c.a_ring() * c.a_producers)) return e;
  e.in_loops_with = fills;
  if (c.ring > 1 && c.a_ring() > 1) e.max_loop_drains = 0;
  e.min_bytes_in_flight = static_cast<std::uint32_t>(std::min((c.ring - 1) * c.b_loads(), (c.a_ring() - 1) * c.a_loads()) * 1024);
  return e;
}

// One workgroup a CU is enough: what keeps the memory busy is in flight inside each wave.
isa::Expectations gemm_contract(const Plan& plan, const SkinnyGemmConfig& c) {
  isa::Expectations e{.no_scratch = true, .no_spills = true, .max_vgprs = vgprs_of_wave(c.waves), .max_lds_bytes = c.lds_bytes()};
  // Weights and activations 16 bytes at a time; the epilogue's operands and partial sums as the chunks of C are.
  e.global_loads.min_bytes = 16;
  e.global_loads.at_least = static_cast<std::uint32_t>(c.ring * c.b_loads());
  e.global_loads.exceptions = static_cast<std::uint32_t>(c.chunks() * 8 * (c.products * 4 + static_cast<int>(plan.tensors.size()) * 8));
  // The ring is loaded in at most eight places of the code: the first turn, the next ones and the last but one, twice each
  // where tiles follow each other, and twice where a turn may be partial.
  e.global_loads.exceptions += static_cast<std::uint32_t>(8 * gemm_scale_loads(c));
  e.forbidden = {"flat_", "ds_bpermute", "ds_permute"};
  // LLVM 21 at times leaves one wait state too few between a matrix instruction and the reads of its result behind a branch.
  e.no_findings = {"HAZ002"};
  if (c.has_producers()) return with_producers_contract(std::move(e), c);
  const char* const multiplies = c.is_matrix() ? "v_mfma_" : c.method == GemmMethod::sparse ? "v_smfmac_" : "v_dot";
  if (c.method != GemmMethod::dot) e.required.emplace_back(multiplies);
  // The steady state waits for one step of the ring at a time. A ring of one has nothing in flight then.
  e.in_loops_with = multiplies;
  if (c.ring > 1) e.max_loop_drains = 0;
  e.min_bytes_in_flight = static_cast<std::uint32_t>((c.ring - 1) * c.b_loads() * 1024);
  return e;
}

} // namespace

isa::Expectations contract(const Plan& plan, const Schedule& schedule, const Target& target) {
  if (plan.gemm) return gemm_contract(plan, schedule.gemm);
  isa::Expectations e{.no_scratch = true, .no_spills = true, .max_vgprs = vgprs_of_four_waves, .max_lds_bytes = lds_bytes(plan, schedule)};
  e.global_loads = wide_loads(plan, schedule);
  e.forbidden = {"flat_", "ds_bpermute", "ds_permute"};
  const bool divides = uses(plan, Op::div_exact) || (uses(plan, Op::group_mean) && schedule.family == Family::rowwise);
  if (!divides) e.forbidden.emplace_back("v_div_");
  if (stores_vectors_of(plan, target.fp8_e4m3())) e.required.emplace_back("v_cvt_pk_fp8_f32");
  if (stores_vectors_of(plan, target.fp8_e5m2())) e.required.emplace_back("v_cvt_pk_bf8_f32");
  return e;
}

} // namespace kiln

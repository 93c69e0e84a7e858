// Gemm: what its schedules promise about the ISA.
#include "gen/families/gemm/gemm.h"
#include "gen/families/gemm/register_model.h"
#include "gen/families/rowwise/rowwise.h"
#include "templates/expert_sort_config.h"
#include <algorithm>
#include <utility>

namespace kiln {
namespace {

// Registers that LLVM 21 set aside outside of the loop over k, at points of tests/fuzz/gemm_points.cpp and tests/numeric: up to 32 VGPRs,
// the sums of a lane. Each is a move or two a workgroup and tile.
constexpr int max_vgprs_aside = 32, max_sgprs_aside = 32;
// Loads of pairs in the code that lists them: LLVM 21 unrolls that loop 16 times, and 2 and 1 for what is left.
constexpr int unrolled_pairs = 16 + 2 + 1;

// Reads and writes of flags in LDS that method producers has beside those of rings: of the waves that multiply, and of first loads.
constexpr int flags_elsewhere = 24;

std::uint32_t count(int value) { return static_cast<std::uint32_t>(value); }

// Accesses to LDS of method producers: words that the waves that load pass on, and as exceptions flags and sums. Registers are passed on in
// two places for each place of the ring, with up to two reads of a flag and a write; direct loads raise up to two flags in each.
Widths producers_lds(const GemmConfig& c) {
  // If a row ends within the only step, words of A that lie beyond its end need not be read.
  const int used = std::min(c.loads, ceil_div(c.row_bytes(), c.step_bytes() / c.loads));
  const int sums = c.summing_waves() * c.lane_numbers() + c.products * c.tile_n / 16 * c.row_tiles() * 4;
  return {.min_bytes = 16,
          .exceptions = count(sums + (c.direct ? 2 : 6) * (c.stages + c.a_stages()) + flags_elsewhere),
          .at_least = count(c.b_loads() + c.a_loads() / c.loads * used)};
}

void promise_producers(Promises& p, const GemmConfig& c) {
  const char* const fills = c.direct ? "global_load_lds_dwordx4" : "ds_write_b128";
  for (const char* const each : {"v_mfma_", "ds_read_b128", "s_sleep"}) p.required.emplace_back(each);
  if (c.direct) p.required.emplace_back(fills); // sums are written to LDS too
  // All of them may be issued by a loop.
  p.global_loads = std::exchange(p.loads_outside_loops, {});
  p.global_loads.at_least = count(c.b_loads());
  p.lds = producers_lds(c);
  // The waves that load keep all of their ring but one step in flight. A tile that is loaded at once has no loop.
  p.in_loops_with = fills;
  if (c.steps_per_tile() <= std::max(c.stages * c.b_producers, c.a_stages() * c.a_producers)) return;
  p.min_loops = 1;
  if (const int kept = std::min((c.stages - 1) * c.b_loads(), (c.a_stages() - 1) * c.a_loads()); kept > 0) {
    p.max_loop_drains = 0;
    p.min_bytes_in_flight = count(kept * 1024);
    p.min_loop_wait = count(kept);
  }
  // Without direct loads, what finishes a tile may be a loop that fills LDS as well, loads the epilogue's operands and has barriers.
  if (!c.direct) return;
  p.loop_loads = {.min_bytes = 16, .at_least = count(std::min(c.b_loads(), c.a_loads()))};
  p.max_loop_barriers = 0;
}

// Whether every wave takes turns of the loop: those of the ring's first and last turn are not in it.
bool has_loop(const GemmConfig& c) {
  const long long steps = c.by_expert() ? 0 : std::min<long long>(c.steps() / c.workgroups, c.steps_per_tile());
  return steps / c.step_waves() >= 3 * c.stages;
}

// As templates/common/dot.h: other types are converted, and multiplied in f32.
bool has_dot(DType type, const Target& target) { return type == f16 || type == DType::i8 || (type == bf16 && target.has_dot2_bf16()); }

// The steady state of a schedule without producers: a turn of the ring.
void promise_ring(Promises& p, const GemmConfig& c, bool has_dot, const Target& target) {
  const char* const multiplies = c.is_matrix() ? "v_mfma_" : c.method == GemmMethod::sparse ? "v_smfmac_" : has_dot ? "v_dot" : "v_fma";
  if (c.method != GemmMethod::dot) p.required.emplace_back(multiplies);
  p.in_loops_with = multiplies;
  if (has_loop(c)) p.min_loops = 1;
  const int words = c.b_loads() + gemm_a_loads(c), scales = gemm_scale_loads(c, target);
  p.loop_loads = {.min_bytes = 16, .exceptions = count(scales), .at_least = count(c.stages * words)};
  if (scales > 0) p.loop_loads.excepted = c.b.encoding == Encoding::int4 ? "scales and zero points" : "scales";
  if (c.staged) p.loop_lds = {.min_bytes = 16, .at_least = count(c.stages * c.row_tiles() * c.loads)};
  if (c.shares_rows()) {
    const int tiles = c.stages * (c.row_tiles() + c.loaded_row_tiles()); // that are read, and written
    p.loop_lds = {.min_bytes = 16, .exceptions = count(c.a.plain() ? 0 : tiles), .at_least = count(tiles * c.loads)};
    if (!c.a.plain()) p.loop_lds.excepted = "scales";
  }
  p.max_loop_barriers = c.shares_rows() ? c.stages : 0;
  // It waits for one step of the ring at a time, and for shared rows a step ahead. A ring of one has nothing in flight then.
  if (const int kept = c.stages - (c.shares_rows() ? 2 : 1); kept > 0) {
    p.max_loop_drains = 0;
    p.min_loop_wait = count(kept * (words + (c.wide_scales() ? 0 : scales / c.stages)));
    p.min_bytes_in_flight = count(kept * words * 1024);
  }
  // Addresses and sums wait in AGPRs and in lanes of VGPRs while many rows, or parts of several tiles, need all others.
  if (c.is_matrix() && !c.shares_rows() && (c.rows > 16 || c.splits())) {
    p.max_vgpr_spills = max_vgprs_aside;
    p.max_sgpr_spills = max_sgprs_aside;
  }
}

// Turns of the ring in the code outside of the loop: the first one, again where tiles follow each other; the last but one, if it may be
// partial; and one of a loop that is taken once, which LLVM may make straight code.
int turns_outside(const GemmConfig& c) {
  const bool partial = c.crosses() || c.steps() / c.workgroups % (c.step_waves() * c.stages) != 0;
  return (c.crosses() ? 2 : 1) + (partial ? 1 : 0) + (has_loop(c) ? 0 : 1);
}

// Loads of less than 16 bytes outside of the loop: scales; the epilogue's operands, for each chunk of C; parts of other workgroups; lines
// of A that are asked for ahead, of as many XCDs on all architectures.
int narrow_outside(const Plan& plan, const GemmConfig& c, const Target& target) {
  const auto operands = static_cast<int>(std::ranges::count(plan.body.tensors, false, &TensorPlan::output));
  const int numbers = c.lane_numbers();
  int finish = operands * c.chunks() * (c.n < c.vec ? c.vec : 1);
  if (c.publishes()) finish += 1 + c.parts_at_a_time() * numbers;
  if (c.splits() && c.atomics) finish += numbers;
  const int copies = c.has_producers() ? 3 : 1; // of what finishes a tile: each kind of wave has its own
  return turns_outside(c) * gemm_scale_loads(c, target) + copies * (finish + c.rows_ahead_loads(target.chip().xcds));
}

} // namespace

Promises Gemm::promises(const Plan& plan, const Config& c, const Target& target) {
  Promises p = promises_of_all();
  // One workgroup a CU is enough: what keeps the memory busy is in flight inside each wave. Waves alone on their SIMD have all registers.
  if (c.waves > simds_per_cu || c.shares_rows())
    p.max_vgprs = vgprs_of_wave(std::max(c.waves, 2 * simds_per_cu)); // shared: two workgroups a CU
  p.max_lds_bytes = c.lds_bytes();
  p.loads_outside_loops = {
      .min_bytes = 16, .exceptions = count(narrow_outside(plan, c, target)), .at_least = count(c.stages * (c.b_loads() + gemm_a_loads(c)))};
  if (c.a.norm_parts > 0) // parts of the sums of squares, and what they are scaled by: templates/gemm/norm_of_rows.h
    p.loads_outside_loops.exceptions += count(ceil_div(c.rows, c.waves) * ceil_div(c.a.norm_parts, wave_size) + 1);
  if (c.a.quantises && c.a.norm_parts == 0) p.loads_outside_loops.at_least += 1; // largest magnitudes of rows
  if (c.by_expert())                                                             // offsets, pairs, and weights of experts
    p.loads_outside_loops.exceptions +=
        count(2 * ceil_div(c.experts.count, wave_size) + unrolled_pairs + (c.experts.sums ? c.experts.top : 0));
  if (c.rows_at_end) {
    const RowwiseConfig rows = rows_at_end(plan.body, c);
    const int tensors = static_cast<int>(plan.body.tensors.size());
    p.loads_outside_loops.exceptions += count(2 * rows.chunks() * (rows.vec + 3) / 4 * tensors * plan.body.passes + 2 * tensors);
    *p.max_lds_bytes += lds_bytes(plan.body, rows);
    if (plan.sort) {
      *p.max_lds_bytes += ExpertSortConfig{static_cast<int>(plan.sort->count)}.lds_bytes();
      p.loads_outside_loops.exceptions += 8; // experts, one by one
    }
  }
  // LLVM 21 at times leaves one wait state too few between a matrix instruction and the reads of its result behind a branch.
  p.no_findings = {"HAZ002:info"}; // infos are what LLVM's table has alone: compiled code keeps it
  limit_to_waves_per_eu(p, c.waves_per_eu);
  if (c.has_producers()) promise_producers(p, c);
  else promise_ring(p, c, has_dot(plan.products.front().a.memory.dtype(), target), target);
  return p;
}

} // namespace kiln

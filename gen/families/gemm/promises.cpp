// Gemm: what its schedules promise about the ISA.
#include "gen/families/gemm/gemm.h"
#include "gen/families/gemm/register_model.h"
#include "gen/families/rowwise/rowwise.h"
#include "templates/expert_sort_config.h"
#include <algorithm>

namespace kiln {
namespace {

// Registers that LLVM 21 set aside outside of the loop over k, at points of tests/fuzz/gemm_points.cpp and tests/numeric: up to 32 VGPRs,
// the sums of a lane. Each is a move or two a workgroup and tile.
constexpr int max_vgprs_aside = 32, max_sgprs_aside = 32;

std::uint32_t count(int value) { return static_cast<std::uint32_t>(value); }

// Accesses to LDS of method producers: words that the waves that load pass on, and as exceptions flags and sums.
PromisedWidths producers_lds(const GemmConfig& c) {
  // If a row ends within the only step, words of A that lie beyond its end need not be read.
  const int used = std::min(c.loads, ceil_div(c.row_bytes(), c.step_bytes() / c.loads));
  const int sums = c.summing_waves() * c.chunks() * c.products * c.vec + c.products * c.tile_n / 16 * c.row_tiles() * 4;
  return {.min_bytes = 16,
          .exceptions = count(sums + 8 * (c.stages + c.a_stages() + 4)),
          .at_least = count(c.b_loads() + c.a_loads() / c.loads * used)};
}

void promise_producers(Promises& p, const GemmConfig& c) {
  const char* const fills = c.direct ? "global_load_lds_dwordx4" : "ds_write_b128";
  p.required = {"v_mfma_", "ds_read_b128", "s_sleep", fills};
  p.global_loads.at_least = count(c.b_loads()); // the rest of the ring may be issued by a loop
  p.lds = producers_lds(c);
  // The waves that load keep all of their ring but one step in flight. A tile that is loaded at once has no loop.
  if (c.steps_per_tile() <= std::max(c.stages * c.b_producers, c.a_stages() * c.a_producers)) return;
  p.in_loops_with = fills;
  if (c.stages > 1 && c.a_stages() > 1) p.max_loop_drains = 0;
  p.min_bytes_in_flight = count(std::min((c.stages - 1) * c.b_loads(), (c.a_stages() - 1) * c.a_loads()) * 1024);
}

// The steady state of a schedule without producers.
void promise_ring(Promises& p, const GemmConfig& c) {
  const char* const multiplies = c.is_matrix() ? "v_mfma_" : c.method == GemmMethod::sparse ? "v_smfmac_" : "v_dot";
  if (c.method != GemmMethod::dot) p.required.emplace_back(multiplies);
  // The steady state waits for one step of the ring at a time. A ring of one has nothing in flight then.
  p.in_loops_with = multiplies;
  if (c.stages > 1) p.max_loop_drains = 0;
  p.min_bytes_in_flight = count((c.stages - 1) * c.b_loads() * 1024);
  // Addresses and sums wait in AGPRs and in lanes of VGPRs while many rows, or parts of several tiles, need all others.
  if (c.is_matrix() && (c.rows > 16 || c.splits())) {
    p.max_vgpr_spills = max_vgprs_aside;
    p.max_sgpr_spills = max_sgprs_aside;
  }
}

} // namespace

Promises Gemm::promises(const Plan& plan, const Config& c, const Target&) {
  // One workgroup a CU is enough: what keeps the memory busy is in flight inside each wave.
  Promises p{.max_vgprs = vgprs_of_wave(c.waves), .max_lds_bytes = c.lds_bytes()};
  // Weights and activations come 16 bytes at a time. The epilogue's operands and partial sums come as the chunks of C do, and
  // scales by the element: the code loads a ring in at most eight places, which are the first turn, the next ones and the last
  // but one, twice each as tiles follow each other, and twice as a turn may be partial.
  const int epilogue = c.chunks() * 8 * (c.products * 4 + static_cast<int>(plan.body.tensors.size()) * 8) +
                       (c.publishes() ? 1 + 4 * c.parts_at_a_time() * c.chunks() * c.products * c.vec : 0);
  p.global_loads = {.min_bytes = 16,
                    .exceptions = count(epilogue + 8 * gemm_scale_loads(c) + (c.a.norm_parts > 0 ? 10 : 0)),
                    .at_least = count(c.stages * c.b_loads())};
  if (c.a.quantises) p.global_loads.at_least += 1; // largest magnitudes of rows
  if (c.by_expert())                               // offsets, pairs, and weights of experts
    p.global_loads.exceptions += count(2 * ceil_div(c.experts.count, wave_size) + 16 + (c.experts.sums ? 8 * c.experts.top : 0));
  if (c.rows_at_end) {
    const RowwiseConfig rows = rows_at_end(plan.body, c);
    const int tensors = static_cast<int>(plan.body.tensors.size());
    p.global_loads.exceptions += count(2 * rows.chunks() * (rows.vec + 3) / 4 * tensors * plan.body.passes + 2 * tensors);
    p.max_lds_bytes += lds_bytes(plan.body, rows);
    if (plan.sort) {
      p.max_lds_bytes += ExpertSortConfig{static_cast<int>(plan.sort->count)}.lds_bytes();
      p.global_loads.exceptions += 8; // experts, one by one
    }
  }
  // LLVM 21 at times leaves one wait state too few between a matrix instruction and the reads of its result behind a branch.
  p.no_findings = {"HAZ002:info"}; // infos are what LLVM's table has alone: compiled code keeps it
  p.limit_to_waves_per_eu(c.waves_per_eu);
  if (c.has_producers()) promise_producers(p, c);
  else promise_ring(p, c);
  return p;
}

} // namespace kiln

// Fitting: the ring, vector, workgroups and producers of a skinny GEMM, and what another method makes of them.
#include "gen/families/gemm/gemm.h"
#include "gen/families/gemm/register_model.h"
#include <algorithm>
#include <bit>

namespace kiln {
namespace {

// The peak of MI300X at its latency under load (docs/isa_analyses.md) needs 14 KiB in flight per CU; four times that hides jitter.
constexpr int kib_in_flight_per_cu = 64;
constexpr int max_loads = 4, max_stages = 16; // as why_invalid has it
constexpr int kib_for_producers = 96;         // in direct loads, which take no registers

// Whether vmcnt can tell that one step has arrived while the others are in flight.
bool fits_counter(const GemmConfig& c) {
  if (c.b.word_scales() == 0) return c.stages * c.b_loads() <= max_loads_in_flight;
  const int scales = gemm_scale_loads(c), others = c.wide_scales() ? scales : scales - scales / c.stages;
  return (c.stages - 1) * (c.b_loads() + gemm_a_loads(c)) + others < max_vmcnt && c.stages * c.b_loads() <= max_loads_in_flight;
}

// Steps of the wave that has most, of a workgroup that has most: waves take whole turns of the ring, or are to load them in whole turns.
long long wave_steps(const GemmConfig& c) {
  const long long steps = (c.steps() + c.workgroups - 1) / c.workgroups, of_wave = (steps + c.step_waves() - 1) / c.step_waves();
  if (c.batch_invariant) return (of_wave + c.stages - 1) / c.stages * c.stages;
  const long long turns = (steps + c.stages - 1) / c.stages;
  return std::min(steps, (turns + c.step_waves() - 1) / c.step_waves() * c.stages);
}

// Slots in LDS. Direct loads need all that is in flight, and one more for every wave that reads; loads through registers need
// one for each wave and one to fill.
int wanted_slots(const GemmConfig& c) {
  const int most = std::max({c.b_producers, c.a_producers, c.summing_waves()});
  return c.direct ? std::max(c.stages * c.b_producers + c.summing_waves(), most) : most + 1;
}

// Half of the waves load B; the widest tile and the longest ring whose slots fit, with at least two steps in flight a wave.
// If many rows of wide elements fill LDS: one load a step, then fewer waves.
GemmConfig with_producers(GemmConfig c, const Target& target) {
  c.method = GemmMethod::producers;
  c.direct = target.has_wide_lds_dma();
  const auto fits = [&] {
    c.slots = wanted_slots(c);
    return why_invalid(c) == nullptr && c.lds_bytes() <= target.lds_bytes() && producers_fit_registers(c);
  };
  const int narrowest = std::max(16, c.epilogue_group), workgroups = c.workgroups;
  const int widest = std::max(narrowest, std::min(c.tile_n, 64 / c.products));
  for (c.waves = 8; c.waves >= 4; c.waves /= 2)
    for (c.loads = 2; c.loads >= 1; c.loads /= 2) // 2: 128 bytes of a row of B, a cache line, by one wave
      for (c.tile_n = widest; c.tile_n >= narrowest; c.tile_n /= 2) {
        c.b_producers = c.waves / 2;
        c.workgroups = static_cast<int>(std::min<long long>(workgroups, c.steps()));
        for (c.a_producers = 1; c.a_producers < c.waves - c.b_producers; ++c.a_producers)
          for (c.stages = kib_for_producers / (c.b_producers * c.b_loads()); c.stages >= 2; --c.stages)
            if (fits()) return c;
      }
  c.waves = 4;
  c.b_producers = c.loads = c.stages = c.a_producers = 1;
  c.tile_n = narrowest;
  c.slots = wanted_slots(c);
  return c; // fits or not: why_not says why
}

} // namespace

GemmConfig with_shared_rows(GemmConfig c, int row_blocks) {
  c.method = GemmMethod::shared_rows;
  c.waves = simds_per_cu;
  c.row_blocks = row_blocks;
  c.tile_n = shared_columns / c.products;
  c.vec = 4; // as matrix instructions leave their sums
  for (c.loads = 2; c.loads > 1 && c.k_tail();) c.loads /= 2;
  c.workgroups = c.tiles() * c.row_blocks;
  return with_ring(c);
}

GemmConfig with_ring(GemmConfig c) {
  const int loads = (kib_in_flight_per_cu / c.waves + c.b_loads() - 1) / c.b_loads(); // with one workgroup a CU
  const int early = c.shares_rows() ? 1 : 0; // rows are waited for a step before they are multiplied
  const int least = early + std::max({1, loads, (min_kib_in_flight / c.waves + c.b_loads() - 1) / c.b_loads() + 1});
  const auto fits = [&] { return fits_registers(c) && fits_counter(c) && c.stages <= max_stages; };
  GemmConfig best = c;
  best.stages = 0;
  for (c.stages = least; fits(); ++c.stages)
    if (best.stages == 0 || wave_steps(c) < wave_steps(best)) best = c;
  for (c.stages = least; best.stages == 0; --c.stages)
    if (fits() || c.stages == 1) best = c;
  const long long steps = (c.steps() + c.workgroups - 1) / c.workgroups;
  const long long most =
      c.shares_rows() ? std::max<long long>(min_shared_stages, steps / 2) : (steps + c.waves - 1) / c.waves; // shared: a turn of the loop
  best.stages = static_cast<int>(std::min<long long>(best.stages, most));
  return best;
}

std::optional<GemmConfig> with_shorter_ring(GemmConfig c) {
  const long long most = wave_steps(c);
  while (--c.stages > 1)
    if (wave_steps(c) < most) return c;
  return std::nullopt;
}

std::optional<GemmConfig> with_wave_a_tile(GemmConfig c) {
  c.waves = 1;
  for (c.loads = 1; c.loads <= max_loads; c.loads *= 2) {
    c.stages = c.steps_per_tile();
    if (c.stages <= (c.by_expert() ? 1 : max_stages) && fits_registers(c) && fits_counter(c)) return with_vec(c);
  }
  return std::nullopt;
}

GemmConfig with_vec(GemmConfig c) {
  const auto each = static_cast<unsigned>(std::max(1, c.rows * c.tile_n / c.threads()));
  // Which products the compiler contracts with sums may follow from vec: batch-invariant epilogues have one for all rows, that of few.
  c.vec = c.batch_invariant ? 2 : std::min(8, static_cast<int>(std::bit_floor(each)));
  // A wave has all of a group of columns, and a lane all that share a byte.
  if (c.epilogue_group) c.vec = std::max({c.vec, 2, c.epilogue_group / wave_size});
  while (c.n % c.vec) c.vec /= 2;
  return c;
}

GemmConfig with_workgroups(GemmConfig c, int cus) {
  c.workgroups = static_cast<int>(std::clamp<long long>(c.steps() / c.waves, 1, cus));
  return c;
}

GemmConfig with_method(GemmConfig c, GemmMethod method, const Target& target) {
  if (method == GemmMethod::shared_rows) return with_shared_rows(c, ceil_div(c.rows, max_shared_rows));
  const bool shared =
      c.epilogue_group == 0 && c.products * c.tile_n == shared_columns; // chosen before: no other choice has so many columns
  c.method = method;
  if (shared) {
    c.row_blocks = 1;
    c.tile_n /= 2;
    c = with_workgroups(c, target.compute_units());
  }
  if (method == GemmMethod::producers) return with_producers(c, target);
  if (method == GemmMethod::matrix && !shared) return c;
  if (method == GemmMethod::dot) c.loads = 1; // four rows of B by four lanes each: more registers go into the ring
  const int wanted = method == GemmMethod::dot ? 16 : method == GemmMethod::matrix32 ? std::max(32, c.tile_n) : c.tile_n;
  const int widest = std::max(wanted, c.epilogue_group);
  for (c.tile_n = widest;; c.tile_n /= 2) {
    GemmConfig fitted = with_vec(with_ring(with_workgroups(c, target.compute_units())));
    const bool narrowest = c.tile_n <= std::max({c.rows_per_load(), 16, c.epilogue_group});
    if (!narrowest && (!fits_registers(fitted) || fitted.lds_bytes() > target.lds_bytes())) continue;
    while (fitted.lds_bytes() > target.lds_bytes() && fitted.waves > 1) { // holds the sums of each wave
      fitted.waves /= 2;
      fitted = with_vec(with_ring(with_workgroups(fitted, target.compute_units())));
    }
    return fitted;
  }
}

} // namespace kiln

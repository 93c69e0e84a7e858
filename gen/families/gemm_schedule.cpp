// Schedules of skinny GEMMs: bytes of weights in flight and balance over the CUs decide.
#include "gen/families/gemm_schedule.h"
#include "gen/error.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace kiln {
namespace {

// HBM3 at 5.3 TB/s with about 1 us of loaded latency needs 17 KiB in flight per CU; nearly four times that hides jitter.
constexpr int kib_in_flight_per_cu = 64;
constexpr int kib_behind_a_wait = 48; // what is still in flight where the oldest step has been waited for
constexpr int vgprs_for_ring = 224;  // of 256 addressable ones
constexpr int vgprs_for_loads = 216; // of those, what loads bring: 220 were copied, in points of tests/fuzz/gemm_points.cpp
constexpr int vgprs_with_group_sums = 192; // all, where the vector ALU adds a group's sums: 206 were spilled there
// Without the sums. Measured: from 236 on LLVM 21 copies what was loaded to or from AGPRs, which drains the ring.
constexpr int vgprs_for_ring_beside_agprs = 228;
constexpr double good_balance = 0.97;
// A comes from L2, as B does. Assumed: 2 KiB a clock of an XCD (16 channels of 128 bytes), so 54 bytes a clock of each CU of
// MI300X and 64 of MI350X; B, at the bandwidth of HBM, takes 8.3 and 13 of them. That leaves A 5.5 and 3.9 times as much as B.
constexpr double most_a_for_b = 4;

// Four groups at a time: two VGPRs of scales and one of zero points, of this turn and of the next one.
int scale_vgprs(const SkinnyGemmConfig& c) { return c.wide_scales() ? gemm_scale_loads(c) / 2 * 6 : gemm_scale_loads(c); }

int ring_vgprs(const SkinnyGemmConfig& c) { return c.ring * (c.b_loads() + gemm_a_loads(c)) * 4 + scale_vgprs(c); }

int sum_vgprs(const SkinnyGemmConfig& c) {
  const int each = c.is_matrix() ? c.edge() * c.edge() / 64 * c.row_tiles() : c.method == GemmMethod::sparse ? 4 : c.rows;
  const int tiles = c.products * c.tile_n / c.rows_per_load();
  // With scales of blocks, the sums of groups of up to four tiles are added to the others later. Where rows are many, those lie
  // in AGPRs.
  const bool adds_later = c.block_scaled() && c.method == GemmMethod::matrix && c.row_tiles() == 1;
  const int groups = adds_later ? std::min(tiles, 4) * 4 + c.products * 2 : 0;
  return tiles * each + groups;
}

// Of a ring, and of the copy that cuts off what lies beyond the end of k.
int load_vgprs(const SkinnyGemmConfig& c) { return (c.ring + (c.k_tail() ? 1 : 0)) * (c.b_loads() + gemm_a_loads(c)) * 4; }

// Where A's numbers are operands of matrix instructions alone, they may lie in AGPRs, as the sums do, of which a wave that has
// a SIMD to itself has as many as VGPRs.
bool fits_registers(const SkinnyGemmConfig& c) {
  // With a tail of k, 4-bit weights in tiles of 64 x 64 spilled one or two SGPRs (masks), where the ring was short.
  if (c.packed() && c.k_tail() && c.method == GemmMethod::matrix && c.row_tiles() * c.products * c.tile_n >= 4 * 64) return false;
  if (c.unpacks_in_order() && c.waves <= 4) return std::max(ring_vgprs(c), load_vgprs(c)) <= vgprs_for_ring_beside_agprs;
  if (c.block_scaled()) return load_vgprs(c) + scale_vgprs(c) + sum_vgprs(c) <= vgprs_with_group_sums;
  return ring_vgprs(c) + sum_vgprs(c) <= vgprs_for_ring && load_vgprs(c) <= vgprs_for_loads;
}

// Whether vmcnt, which counts to 63, can say that one step has come and the others not.
bool fits_counter(const SkinnyGemmConfig& c) {
  if (!c.packed()) return c.ring * c.b_loads() <= 60;
  const int scales = gemm_scale_loads(c), others = c.wide_scales() ? scales : scales - scales / c.ring;
  return (c.ring - 1) * (c.b_loads() + gemm_a_loads(c)) + others <= 62 && c.ring * c.b_loads() <= 60;
}

// Steps of the wave that has most, of a workgroup that has most: waves take whole turns of the ring.
long long wave_steps(const SkinnyGemmConfig& c) {
  const long long steps = (c.steps() + c.workgroups - 1) / c.workgroups, turns = (steps + c.ring - 1) / c.ring;
  return std::min(steps, (turns + c.waves - 1) / c.waves * c.ring);
}

// KiB of weights in flight where the oldest step has been waited for.
int behind_a_wait(const SkinnyGemmConfig& c) { return (c.ring - 1) * c.b_loads() * c.waves; }

// Whether what is in flight behind a wait is enough, or all there is.
bool keeps_enough(const SkinnyGemmConfig& c) {
  return behind_a_wait(c) >= kib_behind_a_wait || static_cast<long long>(c.ring) * c.waves * c.workgroups >= c.steps();
}

// The ring that keeps enough in flight and gives the waves the same work; of those the smallest.
SkinnyGemmConfig with_ring(SkinnyGemmConfig c) {
  const int loads = (kib_in_flight_per_cu / c.waves + c.b_loads() - 1) / c.b_loads(); // with one workgroup a CU
  const int least = std::max({1, loads, (kib_behind_a_wait / c.waves + c.b_loads() - 1) / c.b_loads() + 1});
  const auto fits = [&] { return fits_registers(c) && fits_counter(c) && c.ring <= 16; };
  SkinnyGemmConfig best = c;
  best.ring = 0;
  for (c.ring = least; fits(); ++c.ring)
    if (best.ring == 0 || wave_steps(c) < wave_steps(best)) best = c;
  for (c.ring = least; best.ring == 0; --c.ring)
    if (fits() || c.ring == 1) best = c;
  const long long steps = (c.steps() + c.workgroups - 1) / c.workgroups;
  best.ring = static_cast<int>(std::min<long long>(best.ring, (steps + c.waves - 1) / c.waves));
  return best;
}

SkinnyGemmConfig with_vec(SkinnyGemmConfig c) {
  const auto each = static_cast<unsigned>(std::max(1, c.rows * c.tile_n / c.threads()));
  c.vec = std::min(8, static_cast<int>(std::bit_floor(each)));
  while (c.n % c.vec) c.vec /= 2;
  return c;
}

// As many workgroups as CUs, but each with a step for every wave at least.
SkinnyGemmConfig with_workgroups(SkinnyGemmConfig c, const Target& target) {
  c.workgroups = static_cast<int>(std::clamp<long long>(c.steps() / c.waves, 1, target.compute_units()));
  return c;
}

SkinnyGemmConfig base_config(const Plan& plan, const Target& target) {
  const GemmPlan& gemm = *plan.gemm;
  SkinnyGemmConfig c{.rows = static_cast<int>(gemm.rows),
                     .n = static_cast<int>(gemm.n),
                     .k = static_cast<int>(gemm.k),
                     .a_bits = size_bytes(gemm.a_type) * 8,
                     .b_bits = gemm.b_bits,
                     .group = static_cast<int>(gemm.group),
                     .preshuffled = gemm.preshuffled,
                     .products = static_cast<int>(gemm.products().size())};
  // One instruction takes 128 bytes of k; a block with a scale has as many.
  if ((target.has_scaled_mfma() && is_fp8(gemm.a_type) && is_fp8(gemm.b_type)) || c.block_scaled()) c.loads = 2;
  return c;
}

// LDS for the slots: all that is in flight, where loads go there directly, and one more for every wave that reads; a slot
// that registers wait for otherwise.
int wanted_slots(const SkinnyGemmConfig& c) {
  const int most = std::max({c.b_producers, c.a_producers, c.summing_waves()});
  return c.direct ? std::max(c.ring * c.b_producers + c.summing_waves(), most) : most + 1;
}

// Half of the waves load B; the widest tile and the longest ring whose slots fit, with at least two steps in flight a wave.
// Where many rows of wide elements fill LDS: one load a step, then fewer waves.
SkinnyGemmConfig with_producers(SkinnyGemmConfig c, const Target& target) {
  c.method = GemmMethod::producers;
  c.direct = target.has_wide_lds_dma();
  const auto fits = [&] {
    c.slots = wanted_slots(c);
    return why_invalid(c) == nullptr && c.lds_bytes() <= target.lds_bytes() && c.ring * c.b_loads() * 4 + sum_vgprs(c) <= vgprs_for_ring;
  };
  const int workgroups = c.workgroups, widest = std::max(16, std::min(c.tile_n, 64 / c.products));
  for (c.waves = 8; c.waves >= 4; c.waves /= 2)
    for (c.loads = 2; c.loads >= 1; c.loads /= 2) // 2: 128 bytes of a row of B, a cache line, by one wave
      for (c.tile_n = widest; c.tile_n >= 16; c.tile_n /= 2) {
        c.b_producers = c.waves / 2;
        c.workgroups = static_cast<int>(std::min<long long>(workgroups, c.steps()));
        for (c.a_producers = 1; c.a_producers < c.waves - c.b_producers; ++c.a_producers)
          for (c.ring = (kib_in_flight_per_cu + 32) / (c.b_producers * c.b_loads()); c.ring >= 2; --c.ring)
            if (fits()) return c;
      }
  c.waves = 4;
  c.b_producers = c.loads = c.ring = c.a_producers = 1;
  c.tile_n = 16;
  c.slots = wanted_slots(c);
  return c; // fits or not: require_valid_gemm says why
}

// How much longer A's bytes take than B's, where they take longer.
double a_excess(const SkinnyGemmConfig& c) { return std::max(1.0, gemm_a_loads(c) / (most_a_for_b * c.b_loads())); }

// The most workgroups that share a tile: the parts that its sum has.
long long most_parts(const SkinnyGemmConfig& c) {
  const long long least_steps = c.steps() / c.workgroups; // of a workgroup
  return std::min<long long>(c.workgroups, (c.steps_per_tile() + least_steps - 2) / least_steps + 1);
}

std::string why(const SkinnyGemmConfig& c, const Target& target) {
  const std::string meeting =
      !c.splits() ? "no tile is split"
                  : fmt::format("a tile is split into up to {} parts, whose sums meet {}", most_parts(c), c.atomics ? "by atomics" : "in fixed order");
  return fmt::format("{} steps of {} x {} bytes on {} workgroups keep {:.1f} % of {} CUs busy, {} KiB of weights in flight a workgroup, {}",
                     c.steps(), c.tile_n * c.products, c.step_bytes(), c.workgroups, 100 * gemm_balance(c, target),
                     target.compute_units(), c.ring * c.b_loads() * c.waves, meeting);
}

} // namespace

int gemm_a_loads(const SkinnyGemmConfig& c) {
  const int rows = c.is_matrix() ? c.row_tiles() : c.method == GemmMethod::sparse ? 1 : c.rows;
  return rows * c.loads * (c.a_bits / c.b_bits);
}

int gemm_scale_loads(const SkinnyGemmConfig& c) {
  if (c.wide_scales()) return 2 * c.b_loads() / c.loads * c.scale_quads(); // four scales, four zero points
  if (c.packed()) return c.ring * 2 * c.b_loads();                         // a scale and a zero point
  if (!c.block_scaled()) return 0;
  const int rows = c.is_matrix() ? c.row_tiles() : c.method == GemmMethod::sparse ? 2 : c.rows;
  return c.ring * (rows + c.products) * (c.method == GemmMethod::dot ? c.loads : 1);
}

bool gemm_without_agprs(const SkinnyGemmConfig& c) {
  return c.block_scaled() && c.method == GemmMethod::matrix && c.row_tiles() == 1 && ring_vgprs(c) + sum_vgprs(c) <= vgprs_for_ring;
}

double gemm_balance(const SkinnyGemmConfig& c, const Target& target) {
  const auto steps = static_cast<double>(c.steps());
  const auto cus = static_cast<double>(target.compute_units());
  const double most = std::ceil(steps / c.workgroups) * std::ceil(c.workgroups / cus);
  return steps / (most * cus);
}

SkinnyGemmConfig with_method(SkinnyGemmConfig c, GemmMethod method, const Target& target) {
  if (method == GemmMethod::producers) return with_producers(c, target);
  c.method = method;
  if (method == GemmMethod::matrix) return c;
  if (method == GemmMethod::dot) c.loads = 1; // four rows of B by four lanes each: more registers go into the ring
  const int widest = method == GemmMethod::dot ? 16 : method == GemmMethod::matrix32 ? std::max(32, c.tile_n) : c.tile_n;
  for (c.tile_n = widest;; c.tile_n /= 2) {
    SkinnyGemmConfig fitted = with_vec(with_ring(with_workgroups(c, target)));
    const bool narrowest = c.tile_n <= c.rows_per_load() || c.tile_n <= 16;
    if (!narrowest && (!fits_registers(fitted) || fitted.lds_bytes() > target.lds_bytes())) continue;
    while (fitted.lds_bytes() > target.lds_bytes() && fitted.waves > 1) { // where the waves' sums meet
      fitted.waves /= 2;
      fitted = with_vec(with_ring(with_workgroups(fitted, target)));
    }
    return fitted;
  }
}

std::vector<Schedule> gemm_candidates(const Plan& plan, const Target& target) {
  const SkinnyGemmConfig base = base_config(plan, target);
  std::vector<SkinnyGemmConfig> configs;
  // The widest tile reads A least often; a narrower one where the CUs would not be busy alike.
  for (const int columns : {64, 32, 16}) {
    SkinnyGemmConfig c = base;
    c.tile_n = std::max(16, columns / c.products);
    c = with_vec(with_ring(with_workgroups(c, target)));
    if (why_invalid(c) || c.lds_bytes() > target.lds_bytes() || (!fits_registers(c) && columns > 16)) continue;
    if (std::ranges::find(configs, c) == configs.end()) configs.push_back(c);
  }
  // Where the widest tile leaves registers for a ring of two, one step in flight behind a wait, a narrower one may have more.
  int of_longer_rings = 0;
  for (const SkinnyGemmConfig& c : configs)
    if (c.ring > 2) of_longer_rings = std::max(of_longer_rings, behind_a_wait(c));
  std::ranges::stable_partition(configs, [&](const SkinnyGemmConfig& c) { return c.ring > 2 || behind_a_wait(c) >= of_longer_rings || keeps_enough(c); });
  std::ranges::stable_partition(configs, keeps_enough);
  std::ranges::stable_partition(configs, [&](const SkinnyGemmConfig& c) { return gemm_balance(c, target) >= good_balance; });
  // One that reads less of A comes first where that saves more than CUs that are not busy alike cost.
  const auto time = [&](const SkinnyGemmConfig& c) { return a_excess(c) / gemm_balance(c, target); };
  const auto quickest = std::ranges::min_element(configs, {}, time);
  if (!configs.empty() && a_excess(*quickest) < a_excess(configs.front())) std::rotate(configs.begin(), quickest, quickest + 1);
  std::vector<Schedule> result;
  for (const SkinnyGemmConfig& c : configs) result.push_back({.family = Family::skinny_gemm, .gemm = c, .why = why(c, target)});
  if (result.empty()) require_valid_gemm(with_vec(with_ring(with_workgroups(base, target))), plan, target); // says why
  return result;
}

void require_valid_gemm(const SkinnyGemmConfig& c, const Plan& plan, const Target& target) {
  const auto subject = fmt::format("schedule of '{}'", plan.spec.name());
  const SkinnyGemmConfig base = base_config(plan, target);
  if (c.rows != base.rows || c.n != base.n || c.k != base.k || c.a_bits != base.a_bits || c.b_bits != base.b_bits ||
      c.products != base.products || c.group != base.group || c.preshuffled != base.preshuffled)
    throw UserError(subject, gemm_fields_text(c), "leave rows, n, k, bits, group, preshuffled and products as the plan has them");
  if (c.direct && !target.has_wide_lds_dma())
    throw UserError(subject, fmt::format("direct=1, but {} loads at most 4 bytes a lane straight into LDS", target.arch()),
                    "use direct=0");
  if (const char* const invalid = why_invalid(c)) throw UserError(subject, gemm_fields_text(c), invalid);
  if (c.lds_bytes() > target.lds_bytes())
    throw UserError(subject, fmt::format("it takes {} bytes of LDS, {} has {}", c.lds_bytes(), target.arch(), target.lds_bytes()),
                    "use a smaller tile_n, fewer waves or fewer slots");
}

std::string gemm_fields_text(const SkinnyGemmConfig& c) {
  std::string producers;
  if (c.has_producers())
    producers = fmt::format("b_producers={} a_producers={} slots={} direct={} ", c.b_producers, c.a_producers, c.slots,
                            static_cast<int>(c.direct));
  return fmt::format(
      "rows={} n={} k={} a_bits={} b_bits={}{}{} method={} products={} tile_n={} waves={} loads={} ring={} workgroups={} "
      "vec={} {}atomics={}",
      c.rows, c.n, c.k, c.a_bits, c.b_bits, c.group ? fmt::format(" group={}", c.group) : "",
      c.preshuffled ? " preshuffled=1" : "", to_string(c.method), c.products, c.tile_n, c.waves, c.loads, c.ring, c.workgroups, c.vec,
      producers, static_cast<int>(c.atomics));
}

} // namespace kiln

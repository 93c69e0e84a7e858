// Gemm: what a launch of a schedule demands of a chip.
#include "gen/families/gemm/gemm.h"
#include "gen/families/gemm/register_model.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace kiln {
namespace {

using machine::l1_ways;
constexpr int l1_sets = machine::l1_bytes / line_bytes / l1_ways;
constexpr double access_bytes = 16.0 * wave_size; // of a load of a wave

// Cycles of a wave and step in the matrix pipe: 16 rows of A by 16 columns by 64 bytes of k take 16 or 32 cycles.
double step_matrix_cycles(const GemmConfig& c, const Target& target) {
  if (c.method == GemmMethod::dot) return 0;
  const double elements_of_k = c.step_k();
  const bool as_bf16 = c.a.mx() && !target.has_scaled_mfma();
  const double of_bits = as_bf16 ? 1 : c.a.bits == 4 ? 4 : c.a.bits == 8 || c.a.quantises ? 2 : 1;
  const double narrow = of_bits * (target.has_scaled_mfma() ? 2.0 : 1.0); // MFMA 16x16x16 f16: 16 cycles
  const double k_a_cycle = c.a.bits == 32 ? 0.125 : narrow;               // 16x16x4 f32: 32 cycles
  return c.row_tiles() * (c.products * c.wave_tile_n() / 16.0) * elements_of_k / k_a_cycle;
}

// Instructions for 16 elements of a row per lane: f32, a product or two, clamped bytes, as LLVM 21 makes them.
double quantise_slots(const GemmConfig& c) { return c.a.norm_parts > 0 ? 85 : 53; }

// Instructions for eight weights of a lane, as LLVM 21 makes them: they become what is multiplied.
double unpack_slots(const GemmConfig& c, const Target& target, DType a) {
  if (c.b.mx()) return target.has_scaled_convert() ? 4 : a == f16 ? 22 : c.b.bits == 4 ? 44 : 73;
  if (!c.packed()) return c.a.bits > c.b.bits ? 8 : 0;
  return a == f16 ? 14 : target.has_dot2_bf16() ? 34 : 50; // bf16 is rounded to by hand on gfx942
}

// The share of those that reads what the one before wrote, and so issues 4 cycles later. Counted in loops as LLVM 21 compiles them.
double dependent_share(const GemmConfig& c, const Target& target, DType a) {
  if (c.b.mx()) return target.has_scaled_convert() ? 0 : 0.23;
  if (!c.packed()) return 0;
  return a == f16 ? 0.05 : target.has_dot2_bf16() ? 0.14 : 0.34;
}

// Numbers of a lane and step that become what is multiplied: those of B, and of A in MX formats.
double converted_numbers(const GemmConfig& c) {
  return c.b_loads() * 128.0 / c.b.bits + (c.a.mx() ? gemm_a_loads(c) * 128.0 / c.a.bits : 0);
}

// Issue slots of a wave and step: loads and their addresses, a wait for each row tile, matrix instructions, and what happens to numbers.
double step_slots(const GemmConfig& c, const Target& target, DType a) {
  const double loads = c.b_loads() + gemm_a_loads(c);
  const bool in_instruction = c.a.mx() && target.has_scaled_mfma();
  const double converted = converted_numbers(c);
  const double quantise = c.quantises_steps() ? quantise_slots(c) * c.row_tiles() * c.loads : 0;
  const double reorder = c.b.encoding == Encoding::int4 && a == f16 && !c.unpacks_in_order() ? 4.0 * gemm_a_loads(c) : 0;
  const double unpack = in_instruction || c.a.quantises ? quantise : unpack_slots(c, target, a) / 8 * converted + reorder;
  const int tiles = c.products * c.wave_tile_n() / 16;
  const double sums = 4.0 * c.row_tiles() * (tiles + 1); // of a group, times the scales of row and column
  const double scales = 2.0 * gemm_scale_loads(c, target) / c.stages + (c.block_scaled() ? sums : 0);
  const double through_lds = c.shares_rows()
                                 ? (c.row_tiles() + c.loaded_row_tiles()) * (c.loads + (c.a.plain() ? 0 : 1)) + 2 + 4.5 * c.b_loads()
                                 : 0;                                                 // a barrier, and lanes exchange words
  const double dots = c.method == GemmMethod::dot ? 4.0 * c.rows * converted / 8 : 0; // a register of both holds two numbers
  const double exchanged =
      c.whole_lines() && !c.shares_rows() ? 6 * loads : 0; // of two words 4 moves and 8 with DPP, as LLVM 21 makes them
  return exchanged + dots + through_lds + 1.5 * loads + step_matrix_cycles(c, target) / 16 + c.row_tiles() + 1.5 + unpack + scales;
}

// By the simulation of 500 products: how far between the latencies of L2 and HBM that of A's lines lies, for they come behind B's.
constexpr double behind_far = 0.5;
// By the simulation of 24 products with 64 to 128 rows on four chips: the share of a step's other instructions that no matrix instruction
// hides, and of B's bytes that a further block of rows finds in L2 no more.
constexpr double overlapped = 0.7, block_misses = 0.25;

// By the simulation of 345 points: of a meeting, what a run waits behind its first part, while the next tile's loads are under way. With 0
// one of them is 27 % slower than the best; the worst one is 9.4 % slower with this, and 10.8 % with 1.
constexpr double share_behind_first = 0.5;

// Instructions of a wave for a part that it collects, and for each number of a lane of it. Counted in the loop of stream_k.h as LLVM 21
// compiles it: 4 parts of 4 numbers take 178 to 199, 2 parts of 8 take 142.
constexpr double part_slots = 22, number_slots = 6;

// Bytes that reads of LDS take in a bank pass.
double lds_read_bytes(const machine::Chip& chip) {
  return 4.0 * std::ranges::find(machine::archs, chip.arch, &machine::Arch::name)->lds_read_banks;
}

// Cycles of a step of shared rows: a wave alone on its SIMD, beside LDS, through which all rows pass to every wave.
double shared_step_cycles(const GemmConfig& c, const Target& target, DType a) {
  const machine::Chip& chip = target.chip();
  const double lds =
      (c.row_tiles() + c.loaded_row_tiles()) * c.waves * c.loads * access_bytes / lds_read_bytes(chip) * chip.lds_pass_cycles;
  const double matrix = step_matrix_cycles(c, target), others = issue_clocks * (step_slots(c, target, a) - matrix / 16);
  return std::max(lds, matrix + overlapped * others) + chip.barrier_cycles;
}

// How often a line of 128 bytes is requested: loads cover a part of it each. Words of A beside a word of B lie in turn.
int loads_a_line(const GemmConfig& c) { return c.b.preshuffled ? 1 : std::max(1, line_bytes / c.step_bytes()); }
int a_loads_a_line(const GemmConfig& c) { return std::max(1, line_bytes * c.b.bits / (c.step_bytes() * c.a.bits)); }

// Bytes of L1's path that the loads of a wave and step take. A load of A beside narrower B has words of a row that do not follow each
// other, and touches a half of a line for each; one of scales touches a half for each row.
double step_register_bytes(const GemmConfig& c, const Target& target, double rows) {
  const int ratio = c.a.bits / c.b.bits;
  const double rows_of_load = c.is_matrix() ? std::min(16.0, rows) : 0, half = line_bytes / 2.0;
  const bool narrow_loads = c.b.word_scales() > 0 && c.is_matrix();
  const double scales = narrow_loads ? static_cast<double>(gemm_scale_loads(c, target)) / c.stages * 16 * half : 0;
  return c.b_loads() * access_bytes + gemm_a_loads(c) * std::max(access_bytes, ratio * rows_of_load * half) + scales;
}

// The shares of lines of B and of A that L1 has lost when another part of them is requested: those in sets that the waves of a workgroup
// fill with more lines at a time than there are ways. Rows begin where sets do, and waves at places of their own.
struct LostByL1 {
  double b = 0, a = 0, scales = 0; // scales: of both operands of MX formats
};
LostByL1 lost_by_l1(const GemmConfig& c, int rows) {
  const int ratio = c.a.bits / c.b.bits;
  const long long unit = c.wave_unit(), count = std::min<long long>(c.steps() / c.workgroups, c.steps_per_tile()),
                  units = (count + unit - 1) / unit;
  std::set<long long> of_b, of_a, of_scales;
  const auto add = [](std::set<long long>& lines, long long first, int bytes) {
    for (long long line = first / line_bytes; line <= (first + bytes - 1) / line_bytes; ++line) lines.insert(line);
  };
  for (int wave = 0; wave < c.waves; ++wave) {
    const long long first = c.shares_rows() ? 0 : std::min(units * wave / c.waves * unit, count - 1) * c.step_bytes();
    for (int row = 0; row < c.products * c.tile_n; ++row) add(of_b, first + static_cast<long long>(row) * c.row_bytes(), c.step_bytes());
    for (int row = 0; !c.staged && row < (ratio > 1 ? std::min(rows, 16) : rows); ++row)
      add(of_a, first * ratio + static_cast<long long>(row) * c.a_row_bytes(), c.step_bytes() * ratio);
    for (int row = 0; c.a.mx() && row < (c.a.scales_by_group ? 0 : rows) + c.products * c.tile_n; ++row)
      add(of_scales, first * 8 / c.b.bits / c.b.group + static_cast<long long>(row) * c.groups(), c.step_k() / c.b.group);
  }
  std::array<int, l1_sets> filled{};
  const auto fill = [&](const std::set<long long>& lines) {
    for (const long long line : lines) ++filled[line % l1_sets];
  };
  const auto lost = [&](const std::set<long long>& lines) {
    const auto n = std::ranges::count_if(lines, [&](long long line) { return filled[line % l1_sets] > l1_ways; });
    return static_cast<double>(n) / static_cast<double>(std::max<std::size_t>(1, lines.size()));
  };
  fill(of_a);
  const double a_alone = lost(of_a);
  fill(of_b);
  fill(of_scales);
  if (ratio > 1) return {.b = lost(of_b), .a = a_alone, .scales = lost(of_scales)};
  return {.b = lost(of_b), .a = lost(of_a), .scales = lost(of_scales)};
}

// How often a line is requested of L2 that has several loads, a step apart: once if L1 keeps it, and while it is on its way. Both are
// assumptions of the simulation, so that whole lines, which need neither, are taken where the two would be equal.
double requests_of_a_line(double lost, double loads, double step_ns, double latency_ns) {
  constexpr double at_least = 0.15; // 0.05 to 0.25 cost the same at 621 points of `./dev bench schedule`; less takes halves at close calls
  return 1 + lost * std::max(at_least, 1 - latency_ns / step_ns) * (loads - 1);
}

// Whether every workgroup has whole tiles, or every tile whole workgroups.
bool takes_whole_parts(const GemmConfig& c) {
  if (c.whole_tiles()) return true;
  if (c.steps() % c.workgroups) return false;
  const long long each = c.steps() / c.workgroups;
  return each % c.steps_per_tile() == 0 || c.steps_per_tile() % each == 0;
}

// As StepRuns of templates/stream_k_config.h.
long long first_step(const GemmConfig& c, long long group) { return group * (c.steps() / c.run_unit()) / c.workgroups * c.run_unit(); }

// Steps of a workgroup as its waves take them: whole turns of the ring in every segment, at whose end all wait for the slowest. A turn
// that is not whole loads its last step again, and so does a wave without steps.
struct Turns {
  double added = 0;                 // by the waves that each segment waits for, of the busiest workgroup
  double loaded = 0;                // the mean over the workgroups
  double segments = 1, sharers = 1; // the most of a workgroup, and the most workgroups of a tile
};
Turns turns_of(const GemmConfig& c) {
  Turns result;
  const long long tile = c.steps_per_tile(), unit = c.wave_unit();
  long long last_tile = -1;
  double sharers = 0; // of that tile, so far
  for (long long group = 0; group < c.workgroups; ++group) {
    const long long end = first_step(c, group + 1);
    double added = 0, segments = 0;
    for (long long at = first_step(c, group); at < end;) {
      const long long count = std::min(end - at, tile - at % tile), units = (count + unit - 1) / unit;
      long long most = 0;
      for (int wave = 0; wave < c.step_waves(); ++wave) {
        const long long from = std::min(units * wave / c.step_waves() * unit, count);
        const long long own = std::min(units * (wave + 1) / c.step_waves() * unit, count) - from;
        most = std::max(most, own);
        result.loaded += static_cast<double>(std::max(1LL, (own + c.stages - 1) / c.stages) * c.stages) / c.workgroups;
      }
      added += static_cast<double>(most);
      ++segments;
      sharers = at / tile == last_tile ? sharers + 1 : 1;
      last_tile = at / tile;
      result.sharers = std::max(result.sharers, sharers);
      at += count;
    }
    result.added = std::max(result.added, added);
    result.segments = std::max(result.segments, segments);
  }
  return result;
}

// The share of A's lines that L2 has lost when they are asked for. Workgroups that begin where tiles do go along k together: each line is
// asked for by all of an XCD at about the same time, and once more in their next tile; in between B passes through L2. Before the first
// tile all of A was asked for ahead (rows_ahead_loads). Workgroups whose runs begin anywhere ask for a line again and again, so L2 keeps
// it.
double rows_lost_by_l2(const GemmConfig& c, const Turns& turns, double far_bytes, const machine::Chip& chip) {
  if (!takes_whole_parts(c) && turns.segments > 1) return 0;
  const double passes = std::max(1.0, static_cast<double>(c.steps()) / c.workgroups / c.steps_per_tile());
  const double between = c.workgroups * far_bytes / chip.xcds / passes, kept = machine::l2_bytes;
  return (std::max(0.0, 1 - kept / between) + (between > kept ? passes - 1 : 0)) / passes;
}

// Rows of A that a tile has; loads of others read the last one again, from L1.
double rows_of_a(const Plan& plan, const GemmConfig& c, const RunTimeSizes& sizes) {
  const Dim& m = plan.products.front().a.memory.shape()[0];
  return std::min<double>(c.rows, static_cast<double>(m.is_dynamic() ? sizes.at(m.name()) : m.size()));
}

// In front all of A comes from L2 once more, or the sums of the squares of its rows do; then rows are quantised into LDS, if they are
// staged.
// For every further segment, behind its first loads of B.
void add_quantising(Demand& w, const GemmConfig& c, double rows, double segments, double on_a_cu, const machine::Chip& chip) {
  const double rows_of_wave = std::ceil(rows / c.waves);
  const bool normed = c.a.norm_parts > 0;
  const double loads =
      rows_of_wave * (normed ? std::ceil(c.a.norm_parts / static_cast<double>(wave_size)) : c.largest_trips() * c.largest_in_flight());
  const double trips = normed ? std::ceil(loads / 4) : rows_of_wave * c.largest_trips();         // LargestOfRows
  const double path = normed ? 0 : on_a_cu * rows * c.a_row_bytes() / chip.fill_bytes_per_cycle; // a CU's, from L2
  const double pieces = c.staged ? std::ceil(rows * c.staged_pieces() / c.waves) : 0;
  const double barrier = chip.barrier_cycles + chip.lds_latency_cycles;
  const double found = std::max(path, issue_clocks * 20 * loads + trips * chip.l2_latency_cycles);
  w.chain_ns += (found + issue_clocks * quantise_slots(c) * pieces + barrier) / chip.clock_ghz;
  if (!c.staged) return;
  const double put = 4 * quantise_slots(c) * pieces + barrier;                                // an instruction every 4 cycles
  const double waits = c.prefetches_rows() ? 0 : std::ceil(pieces / 4) * chip.hbm_latency_ns; // four pieces at a time
  w.chain_ns += waits + (segments - 1) * (put / chip.clock_ghz + waits);
}

// Behind a tile the waves of a workgroup, which share its steps, add their sums through LDS: each writes all of its own, and all of them
// are read. Meanwhile no loads come but the ring's for the next tile.
double add_waves_ns(const GemmConfig& c, const machine::Chip& chip) {
  if (c.step_waves() == 1) return 0;
  const double sums = 4.0 * c.step_waves() * c.row_tiles() * 16 * c.tile_n * c.products; // bytes
  const double passes = sums / (4.0 * lds_write_banks) + sums / lds_read_bytes(chip);
  return (passes * chip.lds_pass_cycles + chip.barrier_cycles + chip.lds_latency_cycles) / chip.clock_ghz;
}

// A tile has several workgroups: each publishes its part, numbers beside their generation, 8 bytes each, and the one that counted last
// collects the others', a few parts at a time: a trip to MALL, and the instructions for it. Before that come the way of a store, and of a
// load there and back that sees it; the count was under way before. Its own part is counted among them: without it products were chosen up
// to 1.2 times slower by the simulation, for waiting for the slowest of them is not in here.
void add_meetings(Demand& w, const GemmConfig& c, double sharers, bool several, const machine::Chip& chip) {
  const double published = 8.0 * c.rows * c.tile_n * c.products;
  const double meet = 0.5 * chip.atomic_ns + chip.hbm_latency_ns + chip.lds_latency_cycles / chip.clock_ghz;
  const double own = published / chip.l1_bytes_per_cycle / chip.clock_ghz, write = own + c.workgroups * published / chip.write_tbs / 1e3;
  const double rounds = std::ceil(sharers / c.parts_at_a_time());
  const double slots = c.parts_at_a_time() * (part_slots + number_slots * c.lane_numbers()); // of a round
  const double read = rounds * issue_clocks * slots / chip.clock_ghz + (rounds - 1) * chip.mall_latency_ns;
  w.exit_ns = write + meet + read;
  // A run that has more than one tile publishes its first part, waits for the count, and goes on; behind the last it is the end of the
  // launch.
  if (several) w.chain_ns += own + share_behind_first * meet;
}

} // namespace

Demand Gemm::demand(const Plan& plan, const Config& c, const Target& target, const RunTimeSizes& sizes) {
  const GemmConfig one = c.by_expert() ? as_one_product(c) : c;
  return demand_of_rows(one, rows_of_a(plan, one, sizes), plan.products.front().a.memory.dtype(), target);
}

Demand demand_of_rows(const GemmConfig& c, double all_rows, DType a, const Target& target) {
  const double rows = c.shares_rows() ? std::min<double>(all_rows, c.row_tiles() * 16) : all_rows; // of a tile
  const machine::Chip& chip = target.chip();
  const double steps = static_cast<double>(c.steps()) / c.workgroups; // of a workgroup
  const double most = std::ceil(steps / c.run_unit()) * c.run_unit();
  const double loaders = c.has_producers() ? c.b_producers : c.waves;
  const Turns turns = c.has_producers() ? Turns{.added = std::ceil(most / loaders),
                                                .loaded = steps,
                                                .segments = std::ceil(most / c.steps_per_tile()),
                                                .sharers = std::ceil((c.steps_per_tile() - 1) / steps) + 1}
                                        : turns_of(c);
  Demand w{.workgroups = static_cast<double>(c.workgroups), .waves = static_cast<double>(c.waves)};
  w.per_cu = std::max(1, std::min(gemm_waves_per_simd(c) * simds_per_cu / c.waves, target.lds_bytes() / c.lds_bytes()));
  w.far_bytes = steps * c.b_loads() * c.column_waves() * access_bytes * (1 + block_misses * (c.row_blocks - 1)) / c.row_blocks;
  w.loaded = turns.added * loaders * (c.b_loads() + gemm_a_loads(c)) * access_bytes; // as if all waves had as much as the slowest
  const LostByL1 lost = lost_by_l1(c, static_cast<int>(rows));
  const double requested = turns.loaded / steps; // for a step, as turns that are not whole load the last one again
  const double on_a_cu = std::min(w.per_cu, std::ceil(static_cast<double>(c.workgroups) / chip.cus));
  const double l2_ns = chip.l2_latency_cycles / chip.clock_ghz, a_latency_ns = l2_ns + behind_far * (chip.hbm_latency_ns - l2_ns);
  const double step_ns = on_a_cu * loaders * (c.b_loads() + gemm_a_loads(c)) * access_bytes / chip.fill_bytes_per_cycle / chip.clock_ghz;
  const double again = requests_of_a_line(lost.b, loads_a_line(c) * requested, step_ns, chip.hbm_latency_ns),
               a_again = requests_of_a_line(lost.a, a_loads_a_line(c) * requested, step_ns, a_latency_ns);
  // Rows that are staged are read once for a segment, or for all tiles of a workgroup that has them whole.
  const double read_steps = !c.staged ? steps : (takes_whole_parts(c) ? 1 : turns.segments) * c.max_steps();
  const double a_bytes = read_steps * (rows + (c.a.norm_parts > 0 ? 1 : 0)) * c.step_bytes() * c.a.bits / c.b.bits;
  w.fill_bytes = again * steps * c.b_loads() * c.column_waves() * access_bytes + a_again * a_bytes;
  // A line has the scales of a row for many steps: where L1 loses it, each step asks for it anew.
  if (c.a.mx()) w.fill_bytes += lost.scales * steps * ((c.a.scales_by_group ? 0 : rows) + c.products * c.tile_n) * line_bytes;
  w.register_bytes = turns.loaded * c.column_waves() * step_register_bytes(c, target, rows);
  w.in_flight = std::min<double>(c.stages, turns.added) * loaders * (c.b_loads() + gemm_a_loads(c)) * access_bytes;
  w.near_lost = rows_lost_by_l2(c, turns, w.far_bytes, chip);
  w.stage_share = 1 / std::min<double>(c.stages, turns.added);
  w.written = all_rows * c.n * c.products * 2 / c.workgroups;
  w.instructions = turns.added * step_slots(c, target, a);
  w.dependent = turns.added * dependent_share(c, target, a) * unpack_slots(c, target, a) / 8 * converted_numbers(c);
  w.matrix_cycles = turns.added * step_matrix_cycles(c, target);
  if (c.shares_rows()) w.matrix_cycles = turns.added * shared_step_cycles(c, target, a);
  if (c.a.quantises) add_quantising(w, c, rows, takes_whole_parts(c) ? 1 : turns.segments, on_a_cu, chip);
  w.chain_ns += turns.segments * add_waves_ns(c, chip) / on_a_cu;
  if (c.splits()) add_meetings(w, c, turns.sharers, turns.segments > 1, chip);
  return w;
}

} // namespace kiln

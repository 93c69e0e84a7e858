// Rowwise: schedules of rows, what is valid, and what they promise.
#include "gen/families/rowwise/rowwise.h"
#include "gen/error.h"
#include "gen/families/common/streams.h"
#include "gen/families/rowwise/cluster.h"
#include "gen/families/wide_ranks/wide_ranks.h"
#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln {

static constexpr int vgprs_for_ragged = 16; // masks, and what brings the elements of the last chunk to their places

int kept_registers(const Body& body, const std::vector<Pass>& passes, int vec) {
  int registers = 0;
  for (const Pass& pass : passes)
    for (const int index : pass.keeps) registers += chunk_registers(body.value(index), vec);
  return registers;
}

int registers_of(const Body& body, const std::vector<Pass>& passes, const RowwiseConfig& c) {
  const int kept = c.residency == Residency::registers ? kept_registers(body, passes, c.vec) * c.chunks() : 0;
  return kept + 2 * c.vec + vgprs_beside_streams + (c.ragged() ? vgprs_for_ragged : 0) +
         widest_stream(body, passes, c.vec) * c.prefetch_depth;
}

namespace {

constexpr int vgprs_in_flight = 64;     // for loads in flight: 16 KiB per wave
constexpr int elements_a_lane = 64;     // with 16-bit values half of 64 VGPRs; fewer waves per row spend less on set-up
constexpr int unrolled_chunks = 32;     // code stays far below the 64 KiB instruction cache
constexpr int loop_ahead = 4;           // chunks in flight in a loop over chunks
constexpr int waves_of_last_resort = 2; // a SIMD: 256 VGPRs each

int largest_power_of_two_in(std::int64_t value) { return static_cast<int>(value & -value); }
int next_power_of_two(int value) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(value))); }

// Columns that have to lie within a wave: those of the largest group, and of pairs in registers; 1 without.
int columns_in_wave(const Body& body) {
  std::int64_t columns = 1;
  for (const Value& v : body.values) columns = std::max({columns, v.expr->group, pairs_in_wave(v.expr) ? 2 * v.expr->step : 0});
  return static_cast<int>(columns);
}

// The largest vector that divides the columns, so that rows start aligned. If that is less than half of what one access
// moves, rows are ragged instead: wide accesses at unaligned addresses, the last one of a row too.
int widest_vec(const Body& body, int largest_group) {
  int preferred = std::max(preferred_vec(body), largest_group / wave_size); // a group lies within a wave
  if (body.smallest_group()) preferred = std::min<int>(preferred, static_cast<int>(body.smallest_group()));
  const int natural = std::min(preferred, largest_power_of_two_in(body.cols));
  if (largest_group > wave_size * natural) return preferred;
  return body.cols <= wave_size * natural || natural * 2 >= preferred ? natural : preferred;
}

bool has_views(const Body& body) {
  return std::ranges::any_of(body.values, [](const Value& v) { return v.uses > 0 && info(v.expr.op()).kind == OpKind::view; });
}

// What is wrong with `vec` for a value; nullptr if it fits. Chunks of a view lie in memory as a whole, pairs in a lane or apart.
const char* why_no_vec(const Body& body, const Value& v, int vec) {
  if (v.uses == 0 || v.extent != Extent::element || info(v.expr.op()).kind != OpKind::view) return nullptr;
  if (body.cols % vec) return "divides the columns";
  if (pairs_in_wave(v.expr)) return nullptr;
  if (pairs_in_lane(v.expr)) return vec % (2 * v.expr->step) ? "is a multiple of two partners' distance" : nullptr;
  const auto view = view_of(v.expr);
  if (!view) return nullptr;
  if (view->shift && vec != 1 && vec != body.cols) return "is 1, or has the whole row";
  if (view->partner % vec) return "divides the distance of partners";
  return view->tile % vec ? "divides the columns of what is tiled" : nullptr;
}

int choose_vec(const Body& body, int largest_group) {
  int vec = widest_vec(body, largest_group);
  if (has_views(body)) vec = std::min(vec, largest_power_of_two_in(body.cols)); // rows are no ragged ones
  while (vec > 1 && std::ranges::any_of(body.values, [&](const Value& v) { return why_no_vec(body, v, vec) != nullptr; })) vec /= 2;
  return vec;
}

bool in_one_wave(const Body& body) {
  return std::ranges::any_of(body.values, [&](const Value& v) {
    return needs_one_wave(info(v.expr.op()).kind) && (v.expr.op() != Op::row_cumsum || body.cols <= max_wave_scan);
  });
}
std::int64_t wide_scans(const Body& body) {
  return body.cols <= max_wave_scan ? 0 : std::ranges::count_if(body.values, [](const Value& v) { return v.expr.op() == Op::row_cumsum; });
}
int lds_of_scans(const Body& body, const RowwiseConfig& c) {
  return static_cast<int>(wide_scans(body)) * ceil_div(c.chunks() * std::max(c.rows_per_block, c.threads() / wave_size), 4) * 16; // aligned
}
bool uses_ranks(const Body& body) {
  return std::ranges::any_of(body.values, [](const Value& v) { return info(v.expr.op()).kind == OpKind::rank; });
}

// For the elements that ranks pick from.
int lds_of_picks(const Body& body, const RowwiseConfig& c) {
  const auto picks = std::ranges::count_if(body.values, [](const Value& v) { return v.expr.op() == Op::pick; });
  return static_cast<int>(picks) * c.rows_per_block * c.chunks() * c.chunk_stride() * 4;
}

int lds_of(const RowwiseConfig& c, int kept_dwords_a_chunk) {
  const int kept = c.residency == Residency::lds ? c.chunks() * c.threads() * kept_dwords_a_chunk * 4 : 0;
  return kept + (c.threads_per_row > wave_size ? 4096 : 0); // reductions: at most 16 accumulators of 64 numbers
}

// The residencies that fit, first that which moves least. A row that needs half of the registers or less stays there; else the cost
// decides.
std::vector<RowwiseConfig> with_residencies(RowwiseConfig c, const Body& body, const Target& target) {
  std::vector<RowwiseConfig> result;
  const auto passes = rowwise_passes(body, c);
  const int kept = kept_registers(body, passes, c.vec), stream = widest_stream(body, passes, c.vec);
  const int ahead = std::clamp(vgprs_in_flight / stream, 1, c.chunks());
  c.residency = Residency::registers;
  const int limit = std::min(vgprs_of_four_waves, vgprs_of_wave(c.threads() / wave_size));
  const int fixed = kept * c.chunks() + 2 * c.vec + vgprs_beside_streams + (c.ragged() ? vgprs_for_ragged : 0);
  for (c.prefetch_depth = ahead; c.prefetch_depth > 1 && fixed + stream * c.prefetch_depth > limit;) --c.prefetch_depth;
  const bool fits = fixed + stream * c.prefetch_depth <= limit;
  if (uses_ranks(body)) return {c}; // ranked where it is
  if (fits && c.chunks() <= unrolled_chunks) result.push_back(c);
  if (!result.empty() && 2 * (fixed + stream * c.prefetch_depth) <= limit) return result;
  c.prefetch_depth = std::min(loop_ahead, c.chunks());
  for (const Residency residency : {Residency::lds, Residency::reload}) {
    c.residency = residency;
    if (residency == Residency::lds && (kept == 0 || lds_of(c, kept) > target.lds_bytes())) continue;
    if (residency == Residency::reload && kept == 0 && !result.empty() && result.front().prefetch_depth == c.prefetch_depth)
      continue; // the same
    result.push_back(c);
  }
  return result;
}

// Few rows: one or two chunks per lane, or four of the largest workgroups; any number where a row costs much. The cost decides how many
// workgroups a row has.
std::vector<RowwiseConfig> clusters(const Body& body, RowwiseConfig base, const Target& target) {
  std::vector<RowwiseConfig> result;
  base.rows_per_block = 1;
  for (const int threads : {64, 128, 256, 512, 1024}) {
    base.threads_per_row = threads;
    base.tiles = 1;
    const int row_chunks = base.row_chunks();
    const bool heavy = has_heavy_rows(body, base, target);
    for (int chunks = 1; chunks <= unrolled_chunks; ++chunks) {
      const bool is_usual = chunks <= 2 || (chunks == 4 && threads == max_workgroup_size);
      if (row_chunks % chunks || row_chunks == chunks || !(is_usual || heavy)) continue;
      base.tiles = row_chunks / chunks;
      if (base.tiles <= wave_size && fills_idle_cus(body, base, target)) result.push_back(base);
    }
  }
  return result;
}

// Rows of a wave or less: a wave, and four. Half as much for each of more lanes, if what stays between passes takes too many registers. And
// two vectors for each of half of the lanes: a wave then reduces twice as many rows at a time, which is less to do if there are many.
std::vector<RowwiseConfig> short_rows(const Body& body, RowwiseConfig base, int group, const Target& target) {
  std::vector<RowwiseConfig> result;
  const auto add = [&](RowwiseConfig& c) {
    for (const int threads : {4 * wave_size, wave_size}) {
      c.rows_per_block = std::max(1, threads / c.threads_per_row);
      result.push_back(c);
    }
  };
  bool in_registers = false;
  for (; !in_registers; base.vec /= 2) {
    base.threads_per_row = std::max(next_power_of_two(ceil_div(static_cast<int>(body.cols), base.vec)), std::max(1, group / base.vec));
    add(base);
    for (const RowwiseConfig& c : with_residencies(base, body, target)) in_registers |= c.residency == Residency::registers;
    if (RowwiseConfig half = base;
        in_registers && body.passes > 1 && base.threads_per_row >= 2 && base.threads_per_row * base.vec >= 2 * group) {
      half.threads_per_row /= 2;
      add(half);
    }
    if (2 * base.threads_per_row > wave_size || base.vec <= 2) break;
  }
  return result;
}

std::vector<RowwiseConfig> configs(const Body& body, const Target& target) {
  const int cols = static_cast<int>(body.cols);
  const int group = columns_in_wave(body); // and within a row's lanes
  // Ranks: all lanes take part, so that no access is wider than a lane's share of the row.
  const int vec = uses_ranks(body) ? in_waves(body, 1).vec : choose_vec(body, group);
  const int lanes = ceil_div(cols, vec);
  RowwiseConfig base{.cols = cols, .vec = vec};
  std::vector<RowwiseConfig> result;
  const auto add = [&](RowwiseConfig c) {
    for (const RowwiseConfig& r : with_residencies(c, body, target))
      if (std::ranges::find(result, r) == result.end()) result.push_back(r);
  };
  if (in_one_wave(body)) {
    base.threads_per_row = wave_size;
    for (const int rows : {1, 4}) {
      base.rows_per_block = rows;
      add(base);
    }
  } else if (lanes <= wave_size) {
    for (const RowwiseConfig& c : short_rows(body, base, group, target)) add(c);
  } else if (body.passes == 1 && wide_scans(body) == 0 && std::ranges::none_of(body.values, [](const Value& v) { return v.level > 0; })) {
    // Nothing is reduced, so that workgroups may share a row: fewer chunks each if there are few rows.
    for (const int threads : {4 * wave_size, wave_size}) {
      base.threads_per_row = std::clamp(next_power_of_two(lanes), wave_size, threads);
      for (const int rows : {1, 4}) {
        base.rows_per_block = base.threads_per_row == wave_size ? rows : 1;
        base.tiles = 1;
        const int row_chunks = base.row_chunks();
        for (int chunks = 4; chunks >= 1; --chunks) {
          if (row_chunks % chunks) continue;
          base.tiles = row_chunks / chunks;
          add(base);
        }
      }
    }
  } else {
    // One wave a row up to four chunks: it needs no LDS and no barrier. Then four waves, one for each SIMD of a CU. More waves share
    // what a row waits for and computes.
    int threads = lanes <= 4 * wave_size ? wave_size : 4 * wave_size;
    while (threads < max_workgroup_size && (ceil_div(lanes, threads) * vec > elements_a_lane || ceil_div(lanes, threads) > unrolled_chunks))
      threads *= 2;
    for (; threads <= max_workgroup_size && (threads <= 4 * wave_size || threads / 2 < lanes); threads *= 2) {
      base.threads_per_row = threads;
      for (const int rows : {1, 4}) {
        base.rows_per_block = threads == wave_size ? rows : 1;
        add(base);
      }
    }
    for (const RowwiseConfig& c : wide_scans(body) > 0 ? std::vector<RowwiseConfig>{} : clusters(body, base, target)) add(c);
  }
  return result;
}

std::string why(const RowwiseConfig& c, const Body& body) {
  std::string text = fmt::format("{} columns in {} chunks of {} for each of {} lanes", c.cols, c.chunks(), c.vec, c.threads_per_row);
  if (c.tiles > 1) text += fmt::format(", {} workgroups per row", c.tiles);
  if (c.rows_per_block > 1) text += fmt::format(", {} rows per workgroup", c.rows_per_block);
  if (body.passes > 1 && c.residency == Residency::registers) text += ", the row stays in registers";
  if (body.passes > 1 && c.residency == Residency::lds) text += ", the row is too large for registers and stays in LDS";
  if (body.passes > 1 && c.residency == Residency::reload) text += ", the row is too large to stay on the chip and is read again";
  if (body.passes > 1 && !max_rows(body) && is_long(c)) text += "; with a bound of few rows workgroups would share one";
  return text;
}

} // namespace

std::vector<Pass> rowwise_passes(const Body& body, const RowwiseConfig& c) {
  return split_passes(body, c.residency == Residency::reload ? BetweenPasses::reload : BetweenPasses::keep,
                      is_cluster(body, c) ? StoresIn::last_pass : StoresIn::own_pass);
}

int lds_bytes(const Body& body, const RowwiseConfig& c) {
  return lds_of(c, kept_registers(body, rowwise_passes(body, c), c.vec)) + lds_of_picks(body, c) + lds_of_scans(body, c) +
         cluster_lds_bytes(body, c);
}

RowwiseConfig in_waves(const Body& body, int rows) {
  const int group = columns_in_wave(body);
  RowwiseConfig c{
      .cols = static_cast<int>(body.cols), .vec = choose_vec(body, group), .threads_per_row = wave_size, .rows_per_block = rows};
  const bool has_packed = std::ranges::any_of(body.tensors, [](const TensorPlan& t) { return is_packed(t.dtype); });
  const auto fits = [&](int vec) {
    return (vec > 1 || !has_packed) &&
           std::ranges::none_of(body.values, [&](const Value& v) { return why_no_vec(body, v, vec) != nullptr; });
  };
  while (c.vec / 2 * wave_size >= c.cols && c.vec / 2 >= std::max(1, group / wave_size) && fits(c.vec / 2)) c.vec /= 2;
  c.prefetch_depth = std::min(c.chunks(), loop_ahead);
  return c;
}

// Views take whole vectors, whose width the columns and distances of what they read limit. A group, and pairs in registers, lie in the
// lanes of a wave.
static void require_groups_in_waves(const AnalysedSpec& spec) {
  const Body& body = spec.body;
  const bool pairs = std::ranges::any_of(body.values, [](const Value& v) { return pairs_in_wave(v.expr); });
  if (!pairs && (body.group_sizes.empty() || !has_views(body))) return;
  const int columns = columns_in_wave(body), vec = choose_vec(body, columns);
  if (columns > wave_size * vec)
    throw UserError(fmt::format("kernel '{}'", spec.spec.name()),
                    fmt::format("it has groups of {}{}, and {} gives a lane {} of {} columns at a time", columns,
                                pairs ? " columns, or pairs within as many" : "",
                                pairs ? "a smaller group, or what it reads" : "what it reads by index or in pairs", vec, body.cols),
                    fmt::format("use groups of up to {}, a number of columns that more lanes divide, or two kernels", wave_size * vec));
}

bool Rowwise::can_compute(const AnalysedSpec& spec) { return spec.products.empty() && !has_wide_ranks(spec.body); }

void Rowwise::lay_out(AnalysedSpec& spec) {
  const std::int64_t smallest = spec.body.smallest_group();
  for (const std::int64_t group : spec.body.group_sizes)
    if (group > wave_size * smallest)
      throw UserError(fmt::format("kernel '{}'", spec.spec.name()), fmt::format("it has groups of {} and of {}", smallest, group),
                      "use sizes whose ratio is at most 64, the lanes of a wave, or two kernels");
  lay_out_rows(spec.body);
  require_groups_in_waves(spec);
}

std::vector<Candidate<RowwiseConfig>> Rowwise::candidates(const Plan& plan, const Target& target) {
  std::vector<Candidate<Config>> result;
  for (const Config& c : configs(plan.body, target)) result.push_back({c, why(c, plan.body)});
  return result;
}

// LLVM may need more registers than were estimated.
std::vector<Candidate<RowwiseConfig>> Rowwise::fallbacks(const Config& first) {
  Config c = first;
  c.waves_per_eu = waves_of_last_resort;
  if (first.waves_per_eu > 0 || c.threads() > waves_of_last_resort * simds_per_cu * wave_size) return {};
  return {{c, fmt::format("registers for {} waves per SIMD", c.waves_per_eu)}};
}

std::optional<Refusal> Rowwise::why_not(const Config& c, const Plan& plan, const Target& target) {
  const Body& body = plan.body;
  if (const char* const invalid = why_invalid(c)) return refuse_schedule(plan, fields_text(c), invalid);
  if (c.cols != body.cols)
    return refuse_schedule(plan, fmt::format("cols is {}, the plan has {} columns", c.cols, body.cols), "leave cols as it is");
  if (is_cluster(body, c))
    if (auto why = why_no_cluster(plan, c)) return why;
  for (const TensorPlan& t : body.tensors)
    if (is_packed(t.dtype) && c.vec < 2)
      return refuse_schedule(plan, fmt::format("vec is {}, but '{}' is {}, two numbers a byte", c.vec, t.name, to_string(t.dtype)),
                             "use a vec of 2 or more");
  if (in_one_wave(body) && (c.threads_per_row != wave_size || c.tiles != 1))
    return refuse_schedule(
        plan,
        fmt::format("a row takes {} lanes and {} workgroups, but ranks and running sums go through one wave", c.threads_per_row, c.tiles),
        "use threads_per_row=64 and tiles=1");
  if (wide_scans(body) > 0 && (c.threads_per_row < wave_size || c.tiles != 1))
    return refuse_schedule(
        plan, fmt::format("a row takes {} lanes and {} workgroups, but a workgroup of whole waves adds it up", c.threads_per_row, c.tiles),
        "use threads_per_row=64 or more and tiles=1");
  if (uses_ranks(body) && c.residency != Residency::registers)
    return refuse_schedule(plan, fmt::format("residency is {}, but a row is ranked in registers", to_string(c.residency)),
                           "use residency=registers");
  for (const Value& v : body.values) {
    if (const char* const wanted = why_no_vec(body, v, c.vec))
      return refuse_schedule(plan, fmt::format("vec is {}, but '{}' reads other columns than its own", c.vec, info(v.expr.op()).name),
                             fmt::format("use a vec that {}", wanted));
    const int group = static_cast<int>(v.expr->group);
    if (group && (group < c.vec || group / c.vec > std::min(wave_size, c.threads_per_row)))
      return refuse_schedule(
          plan,
          fmt::format("a group of {} does not lie in 1 to {} lanes of {} elements", group, std::min(wave_size, c.threads_per_row), c.vec),
          "choose vec and threads_per_row so that it does");
    if (const int lanes = std::min(wave_size, c.threads_per_row); pairs_in_wave(v.expr) && 2 * v.expr->step > lanes * c.vec)
      return refuse_schedule(plan, fmt::format("partners {} apart do not lie in {} lanes of {} elements", v.expr->step, lanes, c.vec),
                             "choose vec and threads_per_row so that they do");
  }
  const int lds = lds_bytes(body, c);
  if (lds > target.lds_bytes())
    return refuse_schedule(plan, fmt::format("it takes {} bytes of LDS, {} has {}", lds, target.arch(), target.lds_bytes()),
                           "use residency=reload");
  return why_no_in_place_reads(plan, c);
}

Promises Rowwise::promises(const Plan& plan, const Config& c, const Target& target) {
  const int in_code = c.unrolled() ? c.chunks() : std::min(c.chunks(), 3 * c.prefetch_depth);
  Promises p = stream_promises(plan.body, rowwise_passes(plan.body, c),
                               {.vec = c.vec,
                                .narrow = c.cols < c.vec ? c.vec
                                          : c.ragged()   ? 1
                                                         : 0,
                                .in_code = in_code},
                               target);
  p.max_lds_bytes = lds_bytes(plan.body, c);
  // A reduction is one barrier, a running sum two, and none where a wave has the row. Clusters are turns, and vote.
  const auto rows = std::ranges::count_if(plan.body.values, [](const Value& v) { return is_reduction(v.expr.op()); });
  const auto reductions = rows + 2 * wide_scans(plan.body);
  if (!is_cluster(plan.body, c)) p.max_barriers = c.threads_per_row > wave_size ? static_cast<std::uint32_t>(reductions) : 0;
  if (is_cluster(plan.body, c)) p.global_loads.exceptions += cluster_loads(plan.body);
  const auto in_other_half = [&](const Value& v) { return pairs_in_wave(v.expr) && v.expr->step == wave_size / 2 * c.vec; };
  if (!target.has_permlane_swap() && std::ranges::any_of(plan.body.values, in_other_half)) std::erase(p.forbidden, "ds_bpermute");
  if (c.waves_per_eu > 0) p.max_vgprs = vgprs_of_waves_per_eu(c.waves_per_eu);
  return p;
}

// A lane adds its elements in sequence; lanes, 16-lane partial sums, waves, and up to 64 workgroups combine pairwise.
std::optional<std::int64_t> Rowwise::addition_depth(const Config& c) { return c.chunks() * c.vec + 16 + (c.tiles > 1 ? 6 : 0); }

} // namespace kiln

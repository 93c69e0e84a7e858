// Schedule: the estimate that chooses one, the checks, and the settings by name.
#include "gen/families/schedule.h"
#include "gen/families/gemm_schedule.h"
#include "gen/error.h"
#include "gen/plan/passes.h"
#include <algorithm>
#include <bit>
#include <charconv>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr int vgprs_for_other = 28;  // addresses, temporaries of one chunk beside vec * 2, reductions
constexpr int vgprs_for_ragged = 16; // masks and element addresses of the last chunk
constexpr int vgprs_in_flight = 64;  // for loads in flight: 16 KiB a wave
constexpr int elements_a_lane = 64;  // with 16-bit values half of 64 VGPRs; fewer waves a row spend less on set-up
constexpr int unrolled_chunks = 32;  // code stays far below the 64 KiB instruction cache
constexpr int loop_ahead = 4;

int largest_power_of_two_in(std::int64_t value) { return static_cast<int>(value & -value); }
int next_power_of_two(int value) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(value))); }

// 16 bytes of the narrowest full input, the widest access that exists, but at most two such accesses of the widest.
// Outputs decide where there is no such input.
int preferred_vec(const Plan& plan) {
  int narrowest = 0, widest = 0;
  for (const bool output : {false, true}) {
    for (const TensorPlan& t : plan.tensors) {
      if (t.output != output || t.extent != Extent::element) continue;
      narrowest = narrowest ? std::min(narrowest, size_bytes(t.dtype)) : size_bytes(t.dtype);
      widest = std::max(widest, size_bytes(t.dtype));
    }
    if (narrowest) return std::min(16 / narrowest, 32 / widest);
  }
  return 4;
}

// The largest vector that divides the columns, so that rows start aligned. Where that is less than half of what one access
// moves, rows are ragged instead: wide accesses at unaligned addresses, and single elements only at the end of a row.
int choose_vec(const Plan& plan, int largest_group) {
  int preferred = std::max(preferred_vec(plan), largest_group / 64); // a group lies within a wave
  if (plan.group) preferred = std::min<int>(preferred, static_cast<int>(plan.group));
  const int natural = std::min(preferred, largest_power_of_two_in(plan.cols));
  if (largest_group > 64 * natural) return preferred;
  return plan.cols <= 64 * natural || natural * 2 >= preferred ? natural : preferred;
}

int stream_registers(const Plan& plan, const Pass& pass, int vec) {
  int registers = 0;
  for (const int index : pass.streams) registers += chunk_registers(plan.values[static_cast<std::size_t>(index)], vec);
  return registers;
}
int kept_registers(const Plan& plan, const std::vector<Pass>& passes, int vec) {
  int registers = 0;
  for (const Pass& pass : passes)
    for (const int index : pass.keeps) registers += chunk_registers(plan.values[static_cast<std::size_t>(index)], vec);
  return registers;
}
int widest_stream(const Plan& plan, const std::vector<Pass>& passes, int vec) {
  int widest = 1;
  for (const Pass& pass : passes) widest = std::max(widest, stream_registers(plan, pass, vec));
  return widest;
}

int lds_of(const RowwiseConfig& c, int kept_dwords_a_chunk) {
  const int kept = c.residency == Residency::lds ? c.chunks() * c.threads() * kept_dwords_a_chunk * 4 : 0;
  return kept + (c.threads_per_row > 64 ? 4096 : 0); // reductions: at most 16 accumulators of 64 numbers
}

// The residencies that fit, first that which moves least.
std::vector<RowwiseConfig> with_residencies(RowwiseConfig c, const Plan& plan, const Target& target) {
  std::vector<RowwiseConfig> result;
  const auto passes = split_passes(plan, Residency::registers);
  const int kept = kept_registers(plan, passes, c.vec), stream = widest_stream(plan, passes, c.vec);
  const int ahead = std::clamp(vgprs_in_flight / stream, 1, c.chunks());
  c.residency = Residency::registers;
  const int limit = std::min(max_vgprs / 4, vgprs_of_wave(c.threads() / wave_size)); // four waves a SIMD at least
  const int fixed = kept * c.chunks() + 2 * c.vec + vgprs_for_other + (c.ragged() ? vgprs_for_ragged : 0);
  for (c.ahead = ahead; c.ahead > 1 && fixed + stream * c.ahead > limit;) --c.ahead;
  const bool fits = fixed + stream * c.ahead <= limit;
  if (fits && c.chunks() <= unrolled_chunks) result.push_back(c);
  c.ahead = std::min(loop_ahead, c.chunks());
  for (const Residency residency : {Residency::lds, Residency::reload}) {
    c.residency = residency;
    if (residency == Residency::lds && (kept == 0 || lds_of(c, kept) > target.lds_bytes())) continue;
    result.push_back(c);
  }
  return result;
}

std::vector<RowwiseConfig> rowwise_configs(const Plan& plan, const Target& target) {
  const int cols = static_cast<int>(plan.cols);
  int group = 1; // the largest, which must lie within a row's lanes and within a wave
  for (const Value& v : plan.values) group = std::max(group, static_cast<int>(v.expr->group));
  const int vec = choose_vec(plan, group);
  const int group_lanes = std::max(1, group / vec), lanes = ceil_div(cols, vec);
  RowwiseConfig base{.cols = cols, .vec = vec};
  std::vector<RowwiseConfig> result;
  const auto add = [&](RowwiseConfig c) {
    for (const RowwiseConfig& r : with_residencies(c, plan, target)) result.push_back(r);
  };
  if (lanes <= 64 && !plan.general_rows()) {
    base.threads_per_row = std::max(next_power_of_two(lanes), group_lanes);
    base.rows_per_block = std::max(1, 256 / base.threads_per_row);
    add(base);
  } else if (plan.passes == 1 &&
             plan.values.end() == std::ranges::find_if(plan.values, [](const Value& v) { return v.level > 0; })) {
    base.threads_per_row = std::clamp(next_power_of_two(lanes), 64, 256);
    base.rows_per_block = base.threads_per_row == 64 ? 4 : 1;
    const int row_chunks = base.row_chunks();
    int chunks = 4;
    while (row_chunks % chunks) --chunks;
    base.tiles = row_chunks / chunks;
    add(base);
  } else {
    // One wave a row up to four chunks: it needs no LDS and no barrier. Then four waves, one for each SIMD of a CU.
    int threads = lanes <= 4 * 64 ? 64 : 256;
    while (threads < 1024 && (ceil_div(lanes, threads) * vec > elements_a_lane || ceil_div(lanes, threads) > unrolled_chunks))
      threads *= 2;
    for (; threads <= 1024 && (threads <= 256 || threads / 2 < lanes); threads *= 2) {
      base.threads_per_row = threads;
      base.rows_per_block = threads == 64 ? 4 : 1;
      add(base);
    }
    // Rows that stay on the chip beat rows that are read again, whatever the number of threads.
    std::ranges::stable_sort(result, {}, [](const RowwiseConfig& c) { return static_cast<int>(c.residency); });
  }
  return result;
}

// What the number of elements is a multiple of, whatever the run-time sizes.
std::int64_t known_factor(const Plan& plan) {
  std::int64_t known = 1;
  for (const Shape& dims : plan.outer_dims)
    for (const Dim& dim : dims) known *= dim.is_dynamic() ? 1 : dim.size();
  return known;
}

// Loads of `registers` VGPRs in flight for each lane, in chunks of `vec`; a little less where that makes workgroups exact.
ElementwiseConfig elementwise_config(const Plan& plan, int vec, int registers) {
  ElementwiseConfig c{.vec = vec, .threads = 256};
  const int stream = widest_stream(plan, split_passes(plan, Residency::registers), c.vec);
  c.chunks = c.ahead = std::clamp(registers / stream, 1, 8);
  for (int chunks = c.chunks; chunks * 2 >= c.chunks; --chunks) {
    if (known_factor(plan) % (static_cast<std::int64_t>(c.threads) * c.vec * chunks)) continue;
    c.chunks = c.ahead = chunks;
    c.exact = true;
    break;
  }
  return c;
}

std::string why(const RowwiseConfig& c, const Plan& plan) {
  std::string text =
      fmt::format("{} columns in {} chunks of {} for each of {} lanes", c.cols, c.chunks(), c.vec, c.threads_per_row);
  if (c.tiles > 1) text += fmt::format(", {} workgroups a row", c.tiles);
  if (c.rows_per_block > 1) text += fmt::format(", {} rows a workgroup", c.rows_per_block);
  if (plan.passes > 1 && c.residency == Residency::registers) text += ", the row stays in registers";
  if (plan.passes > 1 && c.residency == Residency::lds) text += ", the row is too large for registers and stays in LDS";
  if (plan.passes > 1 && c.residency == Residency::reload) text += ", the row is too large to stay on the chip and is read again";
  return text;
}

std::string fields_text(const Schedule& schedule) {
  const RowwiseConfig& r = schedule.rowwise;
  const ElementwiseConfig& e = schedule.elementwise;
  if (schedule.family == Family::skinny_gemm) return gemm_fields_text(schedule.gemm);
  if (schedule.family == Family::rowwise)
    return fmt::format("cols={} vec={} threads_per_row={} rows_per_block={} tiles={} ahead={} residency={}", r.cols, r.vec,
                       r.threads_per_row, r.rows_per_block, r.tiles, r.ahead, to_string(r.residency));
  return fmt::format("vec={} threads={} chunks={} ahead={} exact={}", e.vec, e.threads, e.chunks, e.ahead, e.exact);
}

[[noreturn]] void reject(const Plan& plan, const std::string& fact, const std::string& remedy) {
  throw UserError(fmt::format("schedule of '{}'", plan.spec.name()), fact, remedy);
}

bool is_valid(const Schedule& schedule, const Plan& plan, const Target& target) {
  try {
    require_valid(schedule, plan, target);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

} // namespace

std::string_view to_string(Residency residency) {
  return residency == Residency::registers ? "registers" : residency == Residency::lds ? "lds" : "reload";
}

std::string_view to_string(GemmMethod method) {
  switch (method) {
  case GemmMethod::matrix: return "matrix";
  case GemmMethod::matrix32: return "matrix32";
  case GemmMethod::sparse: return "sparse";
  case GemmMethod::dot: return "dot";
  case GemmMethod::producers: return "producers";
  }
  throw InternalError("unknown GemmMethod");
}

std::vector<Schedule> candidates(const Plan& plan, const Target& target) {
  if (plan.gemm) return gemm_candidates(plan, target);
  if (plan.family == Family::elementwise) {
    // 8 waves a SIMD leave 64 VGPRs, half of them for loads in flight; less for specs that compute much.
    std::vector<Schedule> result;
    for (int vec = preferred_vec(plan); vec >= 1; vec /= 2)
      for (const int registers : {32, 16, 1}) {
        const ElementwiseConfig c = elementwise_config(plan, vec, registers);
        result.push_back({.family = plan.family,
                          .elementwise = c,
                          .why = fmt::format("flat: {} chunks of {} for each lane{}", c.chunks, c.vec,
                                             c.exact ? ", no partial workgroup" : "")});
        if (result.size() > 1 && result.end()[-2] == result.back()) result.pop_back();
      }
    return result;
  }
  std::vector<Schedule> result;
  Schedule rejected;
  for (const RowwiseConfig& c : rowwise_configs(plan, target)) {
    Schedule schedule{.family = plan.family, .rowwise = c, .why = why(c, plan)};
    if (is_valid(schedule, plan, target))
      result.push_back(std::move(schedule));
    else
      rejected = std::move(schedule);
  }
  if (result.empty()) require_valid(rejected, plan, target); // says why
  return result;
}

Schedule choose_schedule(const Plan& plan, const Target& target) { return candidates(plan, target).front(); }

int lds_bytes(const Plan& plan, const Schedule& schedule) {
  if (schedule.family == Family::elementwise) return 0;
  if (schedule.family == Family::skinny_gemm) return schedule.gemm.lds_bytes();
  const RowwiseConfig& c = schedule.rowwise;
  return lds_of(c, kept_registers(plan, split_passes(plan, c.residency), c.vec));
}

void require_valid(const Schedule& schedule, const Plan& plan, const Target& target) {
  if (schedule.family != plan.family)
    reject(plan, fmt::format("it is {}, the plan is {}", to_string(schedule.family), to_string(plan.family)),
           "make the schedule for this plan");
  if (plan.gemm) return require_valid_gemm(schedule.gemm, plan, target);
  const char* const invalid = plan.family == Family::rowwise ? why_invalid(schedule.rowwise) : why_invalid(schedule.elementwise);
  if (invalid) reject(plan, fields_text(schedule), invalid);
  if (plan.family == Family::elementwise) return;
  const RowwiseConfig& c = schedule.rowwise;
  if (c.cols != plan.cols)
    reject(plan, fmt::format("cols is {}, the plan has {} columns", c.cols, plan.cols), "leave cols as it is");
  if (plan.passes > 1 && c.tiles > 1)
    reject(plan, fmt::format("tiles is {}, but the plan reduces rows", c.tiles),
           "use tiles=1: a row's lanes must be in one workgroup");
  if (plan.general_rows() && c.threads_per_row < 64)
    reject(plan, fmt::format("threads_per_row is {}, but the plan broadcasts over some outer dimensions only", c.threads_per_row),
           "use at least 64: rows must be whole waves");
  for (const Value& v : plan.values) {
    const int group = static_cast<int>(v.expr->group);
    if (group && (group < c.vec || group / c.vec > std::min(64, c.threads_per_row)))
      reject(plan,
             fmt::format("a group of {} does not lie in 1 to {} lanes of {} elements", group, std::min(64, c.threads_per_row),
                         c.vec),
             "choose vec and threads_per_row so that it does");
  }
  const auto passes = split_passes(plan, c.residency);
  const int lds = lds_bytes(plan, schedule);
  if (lds > target.lds_bytes())
    reject(plan, fmt::format("it takes {} bytes of LDS, {} has {}", lds, target.arch(), target.lds_bytes()),
           "use residency=reload");
  for (const TensorPlan& output : plan.tensors) {
    if (output.in_place_of.empty()) continue;
    const int written = plan.value(std::ranges::find(plan.spec.outputs(), output.name, &Output::name)->value).level;
    for (std::size_t p = static_cast<std::size_t>(written) + 1; p < passes.size(); ++p)
      for (const int index : passes[p].streams)
        if (plan.values[static_cast<std::size_t>(index)].expr->name == output.in_place_of)
          reject(plan,
                 fmt::format("output '{}' is in place of '{}', which pass {} reads from memory after pass {} wrote it",
                             output.name, output.in_place_of, p, written),
                 "give the output memory of its own, or use a residency that keeps the row on the chip");
  }
}

Schedule with_overrides(Schedule schedule, const std::vector<std::string>& settings, const Plan& plan, const Target& target) {
  RowwiseConfig& r = schedule.rowwise;
  ElementwiseConfig& e = schedule.elementwise;
  const bool rows = schedule.family == Family::rowwise;
  std::vector<std::pair<std::string_view, int*>> fields;
  int atomics = schedule.gemm.atomics, direct = -1; // -1: as the method sets it
  if (plan.gemm)
    fields = {{"tile_n", &schedule.gemm.tile_n}, {"waves", &schedule.gemm.waves},           {"loads", &schedule.gemm.loads},
              {"ring", &schedule.gemm.ring},     {"workgroups", &schedule.gemm.workgroups}, {"vec", &schedule.gemm.vec},
              {"b_producers", &schedule.gemm.b_producers}, {"a_producers", &schedule.gemm.a_producers},
              {"slots", &schedule.gemm.slots},   {"direct", &direct},                       {"atomics", &atomics}};
  else if (rows)
    fields = {{"vec", &r.vec},
              {"threads_per_row", &r.threads_per_row},
              {"rows_per_block", &r.rows_per_block},
              {"tiles", &r.tiles},
              {"ahead", &r.ahead}};
  else
    fields = {{"vec", &e.vec}, {"threads", &e.threads}, {"chunks", &e.chunks}, {"ahead", &e.ahead}};
  // The method first, for it sets other fields.
  std::vector<std::string> in_order = settings;
  std::ranges::stable_partition(in_order, [](const std::string& setting) { return setting.starts_with("method="); });
  for (const std::string& setting : in_order) {
    const auto subject = fmt::format("setting '{}'", setting);
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) throw UserError(subject, "it has no '='", "write name=value, as in vec=8");
    const std::string field = setting.substr(0, equals), text = setting.substr(equals + 1);
    if (rows && field == "residency") {
      bool known = false;
      for (const Residency residency : {Residency::registers, Residency::lds, Residency::reload})
        if (text == to_string(residency)) r.residency = residency, known = true;
      if (!known) throw UserError(subject, fmt::format("'{}' is no residency", text), "use registers, lds or reload");
      continue;
    }
    if (plan.gemm && field == "method") {
      bool known = false;
      for (const GemmMethod method :
           {GemmMethod::matrix, GemmMethod::matrix32, GemmMethod::sparse, GemmMethod::dot, GemmMethod::producers})
        if (text == to_string(method)) schedule.gemm = with_method(schedule.gemm, method, target), known = true;
      if (!known) throw UserError(subject, fmt::format("'{}' is no method", text), "use matrix, matrix32, sparse, dot or producers");
      continue;
    }
    const auto found = std::ranges::find(fields, field, &std::pair<std::string_view, int*>::first);
    if (found == fields.end()) {
      std::string names = rows ? "residency" : plan.gemm ? "method" : "";
      for (const auto& [known, place] : fields) names += fmt::format("{}{}", names.empty() ? "" : ", ", known);
      throw UserError(subject, fmt::format("a {} schedule has no '{}'", to_string(schedule.family), field), "use one of " + names);
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *found->second);
    if (error != std::errc{} || end != text.data() + text.size())
      throw UserError(subject, fmt::format("'{}' is no whole number", text), "write a number, as in vec=8");
  }
  if (!settings.empty()) schedule.why = "set by hand";
  schedule.gemm.atomics = atomics != 0;
  if (direct >= 0) schedule.gemm.direct = direct != 0;
  if (plan.family == Family::elementwise) e.exact = why_invalid(e) == nullptr && known_factor(plan) % e.tile() == 0;
  require_valid(schedule, plan, target);
  return schedule;
}

std::vector<Schedule> candidates(const Plan& plan, const Target& target, const std::vector<std::string>& settings) {
  std::vector<Schedule> result = candidates(plan, target);
  if (!settings.empty()) result = {with_overrides(result.front(), settings, plan, target)};
  const auto sets_ring = [](const std::string& setting) { return setting.starts_with("ring="); };
  if (!plan.gemm || std::ranges::any_of(settings, sets_ring)) return result;
  Schedule shorter = result.front();
  shorter.why += "; a shorter ring, as what was better broke the ISA contract";
  while ((shorter.gemm.ring /= 2) > 0)
    if (is_valid(shorter, plan, target)) result.push_back(shorter);
  return result;
}

std::string to_text(const Schedule& schedule) {
  return fmt::format("schedule {}: {}\n  why: {}\n", to_string(schedule.family), fields_text(schedule), schedule.why);
}

} // namespace kiln

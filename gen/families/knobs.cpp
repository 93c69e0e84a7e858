// Knobs: what num_warps, num_stages, BLOCK_*, SPLIT_K and the like are in a schedule, and fields by their former names.
#include "gen/families/knobs.h"
#include "gen/error.h"
#include "gen/families/common/fields.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr std::string_view knobs[] = {"num_warps", "num_stages",           "BLOCK_M", "BLOCK_N", "BLOCK_K",
                                      "SPLIT_K",   "matrix_instr_nonkdim", "kpack"};

// Fields by their former names, which 0.1 still takes, also behind the name of a problem: "q_out.ahead".
constexpr std::pair<std::string_view, std::string_view> renamed[] = {{"ahead", "prefetch_depth"}, {"ring", "stages"}};

Setting with_new_name(Setting s) {
  for (const auto& [old, now] : renamed) {
    const std::string_view field = s.field;
    if (field != old && !field.ends_with(fmt::format(".{}", old))) continue;
    s.field.replace(field.size() - old.size(), old.size(), now);
    s.text = fmt::format("{}={}", s.field, s.value);
  }
  return s;
}

[[noreturn]] void refuse(const Setting& knob, const std::string& reason, const std::string& remedy) {
  throw UserError(fmt::format("setting '{}'", knob.text), reason, remedy);
}

int positive(const Setting& knob) {
  const int value = whole_number(knob);
  if (value < 1 || value > 1 << 24) refuse(knob, fmt::format("{} is no size", value), "use 1 or more");
  return value;
}

// `number` in units of `unit`, which it has to be a multiple of.
int units(const Setting& knob, int unit, const std::string& what) {
  const int number = positive(knob);
  if (number % unit)
    refuse(knob, fmt::format("{} is {}, which is no multiple of {}", knob.field, number, unit), fmt::format("use a multiple: {}", what));
  return number / unit;
}

std::string set(std::string_view field, int value) { return fmt::format("{}={}", field, value); }

// The value that earlier settings give a field.
int value_of(std::string_view field, const std::vector<std::string>& earlier, int otherwise) {
  for (const std::string& text : earlier)
    if (const Setting s = parse_setting(text); s.field == field) otherwise = whole_number(s);
  return otherwise;
}

// What kernels without products have no use for.
void refuse_matrix_knobs(const Setting& knob) {
  if (knob.field == "BLOCK_K" || knob.field == "SPLIT_K" || knob.field == "matrix_instr_nonkdim" || knob.field == "kpack")
    refuse(knob, "the kernel multiplies no matrices", "leave it out");
}

std::string translated(const ElementwiseConfig& c, const Setting& knob, const std::vector<std::string>& earlier) {
  refuse_matrix_knobs(knob);
  if (knob.field == "num_warps") return set("threads", wave_size * positive(knob));
  if (knob.field == "num_stages") return set("prefetch_depth", positive(knob));
  if (knob.field == "BLOCK_M")
    refuse(knob, "a flat kernel has one run of elements, and no rows", "use BLOCK_N, the elements of a workgroup");
  const int lane_elements = value_of("threads", earlier, c.threads) * value_of("vec", earlier, c.vec);
  return set("chunks", units(knob, lane_elements, "threads * vec elements are one chunk of a workgroup"));
}

std::string translated(const RowwiseConfig& c, const Setting& knob, const std::vector<std::string>& earlier) {
  refuse_matrix_knobs(knob);
  if (knob.field == "num_warps") return set("threads_per_row", wave_size * positive(knob));
  if (knob.field == "num_stages") return set("prefetch_depth", positive(knob));
  if (knob.field == "BLOCK_M") return set("rows_per_block", positive(knob));
  const int chunk = value_of("threads_per_row", earlier, c.threads_per_row) * value_of("vec", earlier, c.vec),
            row = ceil_div(c.cols, chunk);
  const int chunks = std::min(row, units(knob, chunk, "threads_per_row * vec columns are one chunk of a row"));
  if (row % chunks)
    refuse(knob, fmt::format("the {} chunks of a row do not divide into parts of {}", row, chunks), "use a divisor of the row");
  return set("tiles", row / chunks);
}

std::string translated(const GemmConfig& c, const Setting& knob, const std::vector<std::string>& earlier) {
  if (knob.field == "num_warps") return set("waves", positive(knob));
  if (knob.field == "num_stages") return set("stages", positive(knob));
  if (knob.field == "BLOCK_M" && c.by_expert()) return set("rows", positive(knob));
  if (knob.field == "BLOCK_M")
    refuse(knob, fmt::format("a workgroup computes all rows: the bound of m, {}", c.rows), "give the spec another bound of m");
  if (knob.field == "BLOCK_N") return set("tile_n", positive(knob));
  if (knob.field == "BLOCK_K") {
    const int load = c.lanes_per_row() * 16 * 8 / c.b.bits; // elements
    return set("loads", units(knob, load, fmt::format("one load of a wave covers {} elements of k", load)));
  }
  if (c.by_expert()) refuse(knob, "products by expert have no such choice", "name a field that --emit schedule prints");
  if (knob.field == "SPLIT_K") {
    const int tile_n = value_of("tile_n", earlier, c.tile_n);
    if (tile_n < 1) refuse(knob, fmt::format("tile_n is {}", tile_n), "use a tile_n of 16 to 256");
    return set("workgroups", ceil_div(c.n, tile_n) * positive(knob));
  }
  if (knob.field == "matrix_instr_nonkdim") {
    if (const int edge = positive(knob); edge != 16 && edge != 32)
      refuse(knob, "matrix instructions are 16 x 16 or 32 x 32", "use 16 or 32");
    return knob.value == "16" ? "method=matrix" : "method=matrix32";
  }
  refuse(knob,
         "a lane always loads 16 contiguous bytes of k, the most that one instruction can, and feeds them to as many matrix instructions",
         "leave it out");
}

// For a family that offers none of them.
template <typename C> std::string translated(const C&, const Setting& knob, const std::vector<std::string>&) {
  refuse(knob, "the kernel's family has no such choice", "name a field that --emit schedule prints");
}

// What others depend on comes first.
int order(const Setting& s) {
  return s.field == "method" || s.field == "matrix_instr_nonkdim" ? 0 : s.field == "BLOCK_N" ? 2 : s.field == "SPLIT_K" ? 3 : 1;
}

} // namespace

std::vector<std::string> without_knobs(const Schedule& schedule, const std::vector<std::string>& settings) {
  std::vector<Setting> parsed;
  for (const std::string& text : settings) parsed.push_back(with_new_name(parse_setting(text)));
  std::ranges::stable_sort(parsed, {}, order);
  std::vector<std::string> result;
  for (const Setting& s : parsed) {
    if (std::ranges::find(knobs, s.field) == std::end(knobs)) {
      result.push_back(s.text);
      continue;
    }
    result.push_back(std::visit([&](const auto& config) { return translated(config, s, result); }, schedule.config));
  }
  return result;
}

} // namespace kiln

// Attention: what its schedules promise about the ISA.
#include "gen/families/attention/attention.h"
#include <algorithm>

namespace kiln {
namespace {

std::uint32_t count(int value) { return static_cast<std::uint32_t>(value); }

// Loads of less than 16 bytes that a wave makes for a step, by what they load.
struct NarrowLoads {
  int values = 0, pages = 0, scales = 0, scores = 0;
  int all() const { return values + pages + scales + scores; }
  std::string names() const {
    std::string text;
    const auto add = [&](int loads, const char* name) {
      if (loads > 0) text += (text.empty() ? "" : ", ") + std::to_string(loads) + " of " + name;
    };
    add(values, "values");
    add(pages, "pages");
    add(scales, "scales");
    add(scores, "the score expression");
    return text;
  }
};
// Those that score expressions read beside the product of q and k.
template <class Wanted> int score_operands(const Plan& plan, Wanted wanted) {
  const AttentionParts& a = attention_of(plan);
  return static_cast<int>(
      std::ranges::count_if(a.score_body.tensors, [&](const TensorPlan& t) { return !t.output && t.name != a.product && wanted(t); }));
}

NarrowLoads narrow_of_step(const Plan& plan, const AttentionConfig& c) {
  const int streams = score_operands(plan, [](const TensorPlan& t) { return t.extent == Extent::element; });
  return {.values = c.cache_bits == 16 ? 0 : c.v_loads(), // 8 elements of a byte
          .pages = c.small_pages() ? c.key_tiles() * (1 + c.value_lookups()) : 0,
          .scales = (c.scales_keys() + c.scales_values()) * c.key_tiles() * 4,
          .scores = streams * c.tiles * c.key_tiles() * 4};
}

// Outside of the loop: those of the first step, its pages and those of the next one; lengths, once in each of four loops and places; what
// score expression and epilogue read of a row or a column; parts of a head that others had, and the generation of them; scales of the head.
int narrow_outside(const Plan& plan, const AttentionConfig& c, const NarrowLoads& of_step) {
  const int scores = score_operands(plan, [](const TensorPlan& t) { return t.extent != Extent::element; });
  const auto operands = static_cast<int>(std::ranges::count(plan.body.tensors, false, &TensorPlan::output));
  return of_step.all() + of_step.pages + 4 + scores * c.tiles + operands * c.units() * 4 + c.parts_at_a_time() * c.lane_numbers() + 1 + 2;
}

// Loads of q: each word of a lane, or one of each tile in the loop that fills LDS.
int wide_of_q(const AttentionConfig& c) { return c.tiles * (c.q_in_lds() ? 1 : c.q_words()); }

} // namespace

Promises Attention::promises(const Plan& plan, const Config& c, const Target&) {
  Promises p = promises_of_all();
  if (c.per_cu > 1) p.max_vgprs = max_vgprs / c.per_cu; // a wave alone on its SIMD has all registers
  p.max_lds_bytes = c.lds_bytes();
  p.max_sgpr_spills = 88; // of score expressions with many scalars, set aside outside of the steady loop: 81 at most in 1,000 random ones
  p.required = {"v_mfma_", "v_exp_f32"};
  // On gfx942 lanes of different quarters of a wave meet by ds_bpermute, where a row's reference moves: in a few steps only.
  p.forbidden = {"flat_", "ds_permute"};
  p.no_findings = {"HAZ002:info"};
  // The steady state is a step: its keys, 16 bytes at a time, and its values, 8 elements at a time.
  const NarrowLoads narrow = narrow_of_step(plan, c);
  const int wide = c.k_loads() + c.v_loads() - narrow.values;
  p.in_loops_with = "v_mfma_";
  p.loop_loads = {.min_bytes = 16, .exceptions = count(narrow.all()), .at_least = count(wide), .excepted = narrow.names()};
  if (c.q_in_lds()) p.loop_lds = {.min_bytes = 16, .at_least = count(c.q_lds_words())};
  p.loads_outside_loops = {.min_bytes = 16, .exceptions = count(narrow_outside(plan, c, narrow)), .at_least = count(wide + wide_of_q(c))};
  // It waits for the keys of a step with its values in flight, and for these with the keys of the next.
  p.max_loop_drains = 0;
  p.max_loop_barriers = 0;
  p.min_loop_wait = count(std::min(c.k_loads(), c.v_loads()));
  p.min_bytes_in_flight = count(std::min(c.k_loads() * 16, c.v_loads() * c.value_bytes()) * wave_size);
  return p;
}

} // namespace kiln

// Elementwise: the schedules of flat kernels, and what they promise.
#include "gen/families/elementwise/elementwise.h"
#include "gen/families/common/streams.h"
#include <algorithm>

namespace kiln {
namespace {

// A factor of the number of elements, whatever the run-time sizes.
std::int64_t known_factor(const Body& body) {
  std::int64_t known = 1;
  for (const Shape& dims : body.outer_dims)
    for (const Dim& dim : dims) known *= dim.is_dynamic() ? 1 : dim.size();
  return known;
}

// Loads of `registers` VGPRs in flight for each lane, in chunks of `vec`; a little less if that makes workgroups exact.
ElementwiseConfig with_loads(const Body& body, int vec, int registers) {
  ElementwiseConfig c{.vec = vec, .threads = 256};
  c.chunks = c.ahead = std::clamp(registers / widest_stream(body, split_passes(body), c.vec), 1, 8);
  for (int chunks = c.chunks; chunks * 2 >= c.chunks; --chunks) {
    if (known_factor(body) % (static_cast<std::int64_t>(c.threads) * c.vec * chunks)) continue;
    c.chunks = c.ahead = chunks;
    c.exact = true;
    break;
  }
  return c;
}

} // namespace

bool Elementwise::takes(const AnalysedSpec& spec) { return spec.products.empty() && can_be_flat(spec.body); }

void Elementwise::lay_out(AnalysedSpec& spec) { lay_out_flat(spec.body); }

std::vector<Candidate<ElementwiseConfig>> Elementwise::candidates(const Plan& plan, const Target&) {
  std::vector<Candidate<Config>> result;
  for (int vec = preferred_vec(plan.body); vec >= 1; vec /= 2)
    // 8 waves a SIMD leave 64 VGPRs, half of them for loads in flight; fewer loads for specs that compute much.
    for (const int registers : {32, 16, 1}) {
      const Config c = with_loads(plan.body, vec, registers);
      if (!result.empty() && result.back().config == c) continue;
      result.push_back({c, fmt::format("flat: {} chunks of {} for each lane{}", c.chunks, c.vec, c.exact ? ", no partial workgroup" : "")});
    }
  return result;
}

void Elementwise::after_setting(Config& c, std::string_view, const Plan& plan, const Target&) {
  c.exact = why_invalid(c) == nullptr && known_factor(plan.body) % c.tile() == 0;
}

void Elementwise::require_valid(const Config& c, const Plan& plan, const Target&) {
  if (const char* const invalid = why_invalid(c)) reject_schedule(plan, fields_text(c), invalid);
}

Promises Elementwise::promises(const Plan& plan, const Config& c, const Target& target) {
  return stream_promises(plan.body, split_passes(plan.body), {.vec = c.vec, .ends = !c.exact}, target);
}

std::optional<std::int64_t> Elementwise::addition_depth(const Config&) { return 0; } // it sums nothing

} // namespace kiln

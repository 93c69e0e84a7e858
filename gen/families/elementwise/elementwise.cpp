// Elementwise: the schedules of flat kernels, and what they promise.
#include "gen/families/elementwise/elementwise.h"
#include "gen/families/common/streams.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln {

std::int64_t known_factor(const Body& body) {
  std::int64_t known = 1;
  for (const Shape& dims : body.outer_dims)
    for (const Dim& dim : dims) known *= dim.is_dynamic() ? 1 : dim.size();
  return known;
}

namespace {

// Loads of `registers` VGPRs in flight for each lane, in chunks of `vec`; a little less if that makes workgroups exact.
ElementwiseConfig with_loads(const Body& body, int vec, int threads, int registers) {
  ElementwiseConfig c{.vec = vec, .threads = threads};
  c.chunks = c.prefetch_depth = std::clamp(registers / widest_stream(body, split_passes(body), c.vec), 1, 8);
  for (int chunks = c.chunks; chunks * 2 >= c.chunks; --chunks) {
    if (known_factor(body) % (static_cast<std::int64_t>(c.threads) * c.vec * chunks)) continue;
    c.chunks = c.prefetch_depth = chunks;
    c.exact = true;
    break;
  }
  return c;
}

} // namespace

bool Elementwise::can_compute(const AnalysedSpec& spec) { return spec.products.empty() && can_be_flat(spec.body); }

void Elementwise::lay_out(AnalysedSpec& spec) { lay_out_flat(spec.body); }

std::vector<Candidate<ElementwiseConfig>> Elementwise::candidates(const Plan& plan, const Target&) {
  std::vector<Candidate<Config>> result;
  const auto add = [&](const Config& c) {
    if (std::ranges::find(result, c, &Candidate<Config>::config) != result.end()) return;
    result.push_back({c, fmt::format("flat: {} chunks of {} for each of {} lanes{}", c.chunks, c.vec, c.threads,
                                     c.exact ? ", no partial workgroup" : "")});
  };
  // 8 waves per SIMD leave 64 VGPRs, half of them for loads in flight; fewer loads for specs that compute much, and for few elements,
  // which small workgroups spread over more CUs.
  const int widest = preferred_vec(plan.body);
  for (const int threads : {4 * wave_size, 2 * wave_size, wave_size})
    for (const int registers : {32, 16, 8, 1}) add(with_loads(plan.body, widest, threads, registers));
  return result;
}

std::vector<Candidate<ElementwiseConfig>> Elementwise::fallbacks(const Config& first) {
  std::vector<Candidate<Config>> result;
  for (int vec = first.vec; vec >= 1; vec /= 2)
    for (const int chunks : {first.chunks, 1}) {
      const Config c{.vec = vec, .threads = first.threads, .chunks = chunks, .prefetch_depth = chunks};
      if (c.tile() < first.tile()) result.push_back({c, "narrower vectors or fewer chunks"});
    }
  return result;
}

void Elementwise::after_setting(Config& c, std::string_view, const Plan& plan, const Target&) {
  c.exact = why_invalid(c) == nullptr && known_factor(plan.body) % c.tile() == 0;
}

ElementwiseConfig Elementwise::with_threads(Config c, int threads, const Plan& plan, const Target& target) {
  c.threads = threads;
  after_setting(c, "threads", plan, target);
  return c;
}

std::optional<Refusal> Elementwise::why_not(const Config& c, const Plan& plan, const Target&) {
  if (const char* const invalid = why_invalid(c)) return refuse_schedule(plan, fields_text(c), invalid);
  return {};
}

Demand Elementwise::demand(const Plan& plan, const Config& c, const Target& target, const RunTimeSizes& sizes) {
  const std::vector<Pass> passes = split_passes(plan.body);
  const ChunkWork chunk = chunk_work(plan.body, passes, c.vec, target);
  const double lanes = c.threads, elements = outer_size(plan.body, sizes);
  Demand w{.workgroups = std::max(1.0, std::ceil(elements / c.tile())), .waves = lanes / wave_size};
  const double chunks = elements / w.workgroups / (lanes * c.vec); // the last workgroup has fewer
  const int stream = widest_stream(plan.body, passes, c.vec);
  w.per_cu = workgroups_per_cu(c.threads / wave_size,
                               wave_vgprs(stream * c.prefetch_depth + vgprs_beside_streams + 2 * c.vec, c.waves_per_eu), 0, target);
  w.far_bytes = chunk.far_bytes * chunks * lanes;
  w.fill_bytes = w.loaded = (chunk.far_bytes + chunk.near_bytes) * chunks * lanes;
  w.written = chunk.written * chunks * lanes;
  w.in_flight = chunk.in_flight * c.prefetch_depth * lanes;
  w.instructions = chunk.instructions * std::ceil(chunks);
  if (!c.exact) w.exit_ns = (c.chunks - 1) * target.chip().hbm_latency_ns; // a partial workgroup loads chunk after chunk
  return w;
}

Promises Elementwise::promises(const Plan& plan, const Config& c, const Target& target) {
  Promises p =
      stream_promises(plan.body, split_passes(plan.body), {.vec = c.vec, .narrow = known_factor(plan.body) % c.vec ? c.vec : 0}, target);
  p.max_barriers = 0;
  limit_to_waves_per_eu(p, c.waves_per_eu);
  return p;
}

std::optional<std::int64_t> Elementwise::addition_depth(const Config&) { return 0; } // it sums nothing

} // namespace kiln

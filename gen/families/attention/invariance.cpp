// Batch invariance of attention: into which parts the keys of a head are cut, by its own length alone.
#include "gen/families/attention/attention.h"
#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr int max_parts = 16;                    // of 8192 keys as many are the quickest by the simulation (docs/attention.md)
constexpr long long max_workspace = 128ll << 20; // bytes, for places that each workgroup has

} // namespace

// As many as give all CUs one part of a single sequence, a power of two.
int invariant_parts(const AttentionConfig& planned, const Target& target) {
  AttentionConfig c = planned;
  c.workgroups = target.compute_units();
  c.parts = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::clamp(c.workgroups / c.kv_heads, 1, max_parts))));
  while (c.parts > 1 && c.workspace_bytes() > max_workspace) c.parts /= 2;
  return c.parts;
}

SumOrder Attention::sum_order(const Plan&, const Config& c, const Target&) {
  if (c.parts == 0)
    return {.order = "keys in equal runs of workgroups",
            .depends_on = "workgroups take equal runs of the keys of all sequences, so that other lengths decide where a sum is split"};
  return {.order = fmt::format("keys in up to {} parts of a sequence, {} a step", c.parts, c.step_keys())};
}

SumOrder Attention::invariant_order(const Plan& plan, const Target& target) {
  return sum_order(plan, candidates(plan, target.with_batch_invariance()).front().config, target);
}

} // namespace kiln

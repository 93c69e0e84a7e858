// Attention: what a launch of a schedule demands of a chip.
#include "gen/families/attention/attention.h"
#include <algorithm>
#include <cmath>

namespace kiln {

Demand Attention::demand(const Plan& plan, const Config& c, const Target& target, const RunTimeSizes& sizes) {
  const machine::Chip& chip = target.chip();
  const auto size = [&](const Dim& dim) { return static_cast<double>(dim.is_dynamic() ? sizes.at(dim.name()) : dim.size()); };
  const double sequences = size(attention_of(plan).sequences()), keys = size(attention_of(plan).keys());
  const double steps = std::max(1.0, sequences * c.items() * std::ceil(keys / c.step_keys()));
  const double items = std::max(1.0, sequences * c.items());
  const double parts = items * c.parts_of(static_cast<unsigned>(steps / items)); // of batch-invariant ones, whole ones a workgroup
  const double active = c.parts > 0
                            ? std::min<double>(c.workgroups, parts)
                            : c.active_workgroups(static_cast<unsigned>(steps), static_cast<unsigned>(items),
                                                  static_cast<float>(std::sqrt(steps / items)), static_cast<float>(c.workgroups / items));
  const double shares = steps / active;
  const double of_values = c.values() * c.cache_bits / 8.0;
  const double step_bytes = c.step_keys() * (c.head_bytes() + of_values); // of keys and values
  Demand w{.workgroups = active, .waves = static_cast<double>(c.waves)};
  w.per_cu = c.per_cu;
  w.fill_bytes = w.loaded = std::max(1.0, shares) * step_bytes;
  // The blocks of rows of a head follow each other, and so do the keys and the values that are columns of them.
  w.far_bytes = w.loaded / c.row_blocks() * (c.value_d ? c.step_keys() * c.head_bytes() / step_bytes : 1);
  w.busiest = (c.parts > 0 ? std::ceil(parts / active) * std::ceil(steps / parts) : std::ceil(shares)) / std::max(1.0, shares);
  w.in_flight = std::min(c.waves * step_bytes, w.loaded);
  w.written = sequences * c.heads * c.tokens * c.values() * 2 / w.workgroups;
  // For a wave and step: addresses and waits, conversions of 8-bit caches, permutations, scores and weights (an exponential takes four
  // slots), as counted in the code of d = 128.
  const double widening = c.cache_bits == 8 ? 2.0 * c.pieces() * 16 + 4.0 * c.blocks() * 16 : 0;
  const double slots = 40 + widening + 32.0 * c.blocks() + 70.0 * c.tiles;
  const double of_wave = std::ceil(std::ceil(shares) / c.waves);
  w.instructions = of_wave * slots;
  w.matrix_cycles = of_wave * 16.0 * c.tiles * (2.0 * c.q_words() + 8.0 * c.blocks() + 1) * (target.has_scaled_mfma() ? 1 : 2);
  w.lead = 200;
  w.tail = 40.0 * c.units();
  w.chain_ns =
      chip.hbm_latency_ns + c.units() * (2 * chip.barrier_cycles + chip.lds_latency_cycles) / chip.clock_ghz; // q, and sums of waves
  if (c.workgroups == 1) return w;
  // Parts of a head meet: the count, a store and a load there and back that sees it, and further parts a few at a time.
  const double sharers = std::ceil((steps / items - 1) / shares) + 1;
  const double rounds = std::ceil(sharers / c.parts_at_a_time());
  w.exit_ns = 1.5 * chip.atomic_ns + chip.hbm_latency_ns + (rounds - 1) * chip.atomic_ns;
  return w;
}

} // namespace kiln

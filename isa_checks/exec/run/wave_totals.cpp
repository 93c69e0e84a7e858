// Adding up what waves counted.
#include "isa_checks/exec/run/execute.h"
#include <numeric>

namespace kiln::exec {

std::uint64_t sum(const ClassCounts& counts) { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }

std::uint64_t WaveTotals::executed() const { return sum(total); }

void WaveTotals::add_wave(const ClassCounts& counts) { add({.waves = 1, .total = counts, .least = counts, .most = counts}); }

void WaveTotals::add(const WaveTotals& other) {
  if (other.waves == 0) return;
  if (waves == 0 || sum(other.least) < sum(least)) least = other.least;
  if (waves == 0 || sum(other.most) > sum(most)) most = other.most;
  for (std::size_t i = 0; i < total.size(); ++i) total[i] += other.total[i];
  waves += other.waves;
}

} // namespace kiln::exec

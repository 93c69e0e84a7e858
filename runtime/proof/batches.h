// Batches: rows of one set of inputs in launches of any size and order, and whether each row has the bits that it has elsewhere.
#pragma once
#include "gen/reference/evaluate.h"
#include "gen/reference/index_check.h"
#include "gen/spec/spec.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

// The dynamic dim that counts the rows of a spec: first in the shape of every output, or of what a scatter writes, and of each input that
// has it.
struct RowDim {
  std::string name;    // empty: none
  std::string why_not; // there is none: "output cache has no rows of m"
};
RowDim row_dim(const KernelSpec& spec);

// Launches rows of one set, of which every third has infinities, NaN and largest values, and remembers the bits of each.
class Batches {
public:
  // `spec`: with the widest bound of rows that is launched; its row_dim has a name. `count` rows to choose from.
  Batches(const KernelSpec& spec, std::uint64_t seed, std::int64_t count = 29);

  // A launch of `size` rows of the set, drawn at random, by a kernel of the same spec with any bound of at least `size`. Each row is
  // drawn once, and all rows of the set at most, if outputs are written by index. The first defect, that it did not complete, or what
  // differs from an earlier launch; empty if nothing is wrong. `by`: what to say of the kernel, ", bound 8".
  std::string launch(const KernelSpec& spec, const BuiltKernel& kernel, std::int64_t size, const std::string& by = {});

  std::size_t compared() const { return compared_; } // rows that had been launched before
  std::function<void(const EmulatedRun&)> also = {}; // sees each launch

private:
  std::vector<std::int64_t> drawn(std::int64_t size);
  Inputs picked(std::span<const std::int64_t> rows) const;
  // The bits of all outputs that row `i` of `count` of a launch wrote.
  std::vector<std::byte> bits_of(const EmulatedRun& run, const Inputs& inputs, std::int64_t i, std::int64_t count) const;

  KernelSpec spec_;
  RowDim rows_;
  std::map<std::string, IndexUse> by_index_; // outputs that scatters write
  Inputs all_;
  std::int64_t count_;
  std::mt19937_64 random_;
  std::map<std::int64_t, std::pair<std::vector<std::byte>, std::string>> known_; // by row: its bits, and where it had them
  std::size_t compared_ = 0;
};

} // namespace kiln

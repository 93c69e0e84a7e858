// Index check: whether the indices that a kernel is given name rows that exist, and none twice.
#pragma once
#include "gen/reference/evaluate.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

// A use of an index tensor by a gather or scatter.
struct IndexUse {
  Expr index, rows; // the inputs: [..., 1], and [n, ...] whose rows it names
  bool scatters = false, checked = false, duplicates = false;
  std::int64_t first = 0, step = 1; // of its elements it takes `first`, first + step, ...: unstacked ones are some of several
};
IndexUse index_use(const Expr& node); // of a gather or scatter
std::vector<IndexUse> index_uses(const KernelSpec& spec);

// A tensor whose rows one index names to read, and another one to write.
struct StateUse {
  IndexUse reads, writes;
};
std::vector<StateUse> state_uses(const KernelSpec& spec);
struct CountedIndex {
  std::int64_t count;
  std::function<std::int64_t(std::int64_t)> at;
};
// The first row that one of the `owners`, indices of the first dimension, reads and another one writes. Nothing when all are sound.
std::optional<std::string> first_foreign_row(const StateUse& use, std::int64_t owners, const CountedIndex& read,
                                             const CountedIndex& written);

// The first index that names what it must not, of `count` ones that `read` gives: "element 3 is 70000, and k_cache has 65536 rows", or
// "elements 3 and 7 are both 5, a row of k_cache that is to be written once". Nothing when all are sound.
std::optional<std::string> first_bad_index(const IndexUse& use, std::int64_t count, std::int64_t rows,
                                           const std::function<std::int64_t(std::int64_t)>& read);

// Throws UserError that names the index, its position and its value.
void require_sound_indices(const KernelSpec& spec, const Inputs& inputs);

} // namespace kiln

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
};
std::vector<IndexUse> index_uses(const KernelSpec& spec);

// The first index that names what it must not, of `count` ones that `read` gives: "element 3 is 70000, and k_cache has 65536 rows", or
// "elements 3 and 7 are both 5, a row of k_cache that is to be written once". Nothing when all are sound.
std::optional<std::string> first_bad_index(const IndexUse& use, std::int64_t count, std::int64_t rows,
                                           const std::function<std::int64_t(std::int64_t)>& read);

// Throws UserError that names the index, its position and its value.
void require_sound_indices(const KernelSpec& spec, const Inputs& inputs);

} // namespace kiln

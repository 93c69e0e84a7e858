// Length check: whether the lengths and pages that attention is given lie within its cache.
#pragma once
#include "gen/reference/evaluate.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

// The cache of an attention: inputs.
struct LengthUse {
  Expr lengths, k;
  std::optional<Expr> pages;
};
std::vector<LengthUse> length_uses(const KernelSpec& spec);

// How many keys a sequence has room for, pages there are, keys one has, pages the table has for a sequence; the last three 0 without pages.
struct CacheSizes {
  std::int64_t keys = 0, pages = 0, page = 0, pages_of_one = 0;
};
CacheSizes cache_sizes(const LengthUse& use, const std::function<std::int64_t(const Dim&)>& size_of);

using ReadIndex = std::function<std::int64_t(std::int64_t)>;
// The first of `count` lengths, or page that a length needs, that is none: "length 3 is 70, and a sequence has room for 64 keys",
// "page 2 of sequence 3 is -1, and k has 40 pages". Nothing when all are sound. Pages may lie in any order, and be shared.
std::optional<std::string> first_bad_length(const CacheSizes& sizes, const std::string& k, std::int64_t count, const ReadIndex& length,
                                            const ReadIndex& page);

// Throws UserError that names the input, its position and its value.
void require_sound_lengths(const KernelSpec& spec, const Inputs& inputs);

} // namespace kiln

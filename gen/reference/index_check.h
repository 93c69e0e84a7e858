// Index check: whether what a kernel takes on trust is sound: indices of rows, lengths and pages of caches, pairs sorted by expert.
#pragma once
#include "gen/error.h"
#include "gen/reference/evaluate.h"
#include <functional>
#include <optional>
#include <span>
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

// The cache of an attention: inputs.
struct LengthUse {
  Expr lengths, k;
  std::optional<Expr> pages;
};
std::vector<LengthUse> length_uses(const KernelSpec& spec);

using SizeOf = std::function<std::int64_t(const Dim&)>;

// How many keys a sequence has room for, pages there are, keys one has, pages the table has for a sequence; the last three 0 without pages.
struct CacheSizes {
  std::int64_t keys = 0, pages = 0, page = 0, pages_of_one = 0;
};
CacheSizes cache_sizes(const LengthUse& use, const SizeOf& size_of);

struct SortedPairs {
  std::vector<std::int64_t> order, offsets;
};
// The pairs by expert, each expert's in their own order; those of no expert from 0 to count - 1 last.
SortedPairs sort_pairs(std::span<const std::int64_t> experts, std::int64_t count);

// What by_expert and sum_of_experts read: inputs.
struct ExpertUse {
  Expr order, offsets;
};
std::vector<ExpertUse> expert_uses(const KernelSpec& spec);

// All of these that a spec has.
struct TrustedInputs {
  std::vector<LengthUse> lengths = {};
  std::vector<ExpertUse> pairs = {};
  std::vector<IndexUse> indices = {};
  std::vector<StateUse> states = {};
  static TrustedInputs of(const KernelSpec& spec);
};

// The numbers of an input in memory.
struct CountedIndex {
  std::int64_t count;
  std::function<std::int64_t(std::int64_t)> at;
};

// The first thing that is wrong with each of them, by element and value: of index 'slot' "element 3 is 70000, and k_cache has 65536 rows",
// of lengths "page 2 of sequence 3 is -1, and k has 40 pages", of pairs "pair 12 stands at 3 and at 9". Inputs for which `read` gives
// nothing are not judged.
std::vector<Refusal> why_not_sound(const TrustedInputs& inputs, const std::function<std::optional<CountedIndex>(const Expr& input)>& read,
                                   const SizeOf& size_of);

// Throws UserError with the first of these.
void require_sound_indices(const KernelSpec& spec, const Inputs& inputs);

} // namespace kiln

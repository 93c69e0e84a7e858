// Expert check: whether pairs that a product is given are sorted by expert; and sorting them.
#pragma once
#include "gen/reference/evaluate.h"
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln {

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

// What is wrong with them: "offset 3 is 7 and offset 4 is 5: offsets must not fall", "pair 12 stands at 3 and at 9". Nothing when every
// pair stands in the part of one expert.
std::optional<std::string> first_bad_pair(std::int64_t pairs, std::int64_t experts, const std::function<std::int64_t(std::int64_t)>& order,
                                          const std::function<std::int64_t(std::int64_t)>& offset);

// Throws UserError that names the input, its position and its value.
void require_sorted_pairs(const KernelSpec& spec, const Inputs& inputs);

} // namespace kiln

// Length check: every length against the cache, every page that it needs against those there are.
#include "gen/reference/length_check.h"
#include "gen/error.h"
#include "gen/spec/attention.h"
#include "gen/spec/graph.h"
#include <fmt/format.h>

namespace kiln {

std::vector<LengthUse> length_uses(const KernelSpec& spec) {
  std::vector<LengthUse> uses;
  for (const Expr& node : nodes_in_order(spec)) {
    if (info(node.op()).kind != OpKind::attention) continue;
    const Expr scores = scores_node(node.operands()[0]);
    LengthUse& use =
        uses.emplace_back(LengthUse{.lengths = node.operands().back(), .k = cache_operand(scores.operands()[1]).cache, .pages = {}});
    if (scores.operands().size() > 2) use.pages = scores.operands()[2];
  }
  return uses;
}

CacheSizes cache_sizes(const LengthUse& use, const std::function<std::int64_t(const Dim&)>& size_of) {
  if (!use.pages) return {.keys = size_of(use.k.shape()[1])};
  const std::int64_t page = size_of(use.k.shape()[1]), of_one = size_of(use.pages->shape()[1]);
  return {.keys = page * of_one, .pages = size_of(use.k.shape()[0]), .page = page, .pages_of_one = of_one};
}

std::optional<std::string> first_bad_length(const CacheSizes& sizes, const std::string& k, std::int64_t count, const ReadIndex& length,
                                            const ReadIndex& page) {
  for (std::int64_t s = 0; s < count; ++s) {
    const std::int64_t keys = length(s);
    if (keys < 0 || keys > sizes.keys) return fmt::format("length {} is {}, and a sequence has room for {} keys", s, keys, sizes.keys);
    for (std::int64_t p = 0; sizes.page && p * sizes.page < keys; ++p)
      if (const std::int64_t at = page(s * sizes.pages_of_one + p); at < 0 || at >= sizes.pages)
        return fmt::format("page {} of sequence {} is {}, and {} has {} pages", p, s, at, k, sizes.pages);
  }
  return {};
}

void require_sound_lengths(const KernelSpec& spec, const Inputs& inputs) {
  const auto sizes_of_dims = dim_sizes(spec, inputs);
  for (const LengthUse& use : length_uses(spec)) {
    const auto sizes = cache_sizes(use, [&](const Dim& dim) { return dim.is_dynamic() ? sizes_of_dims.at(dim.name()) : dim.size(); });
    const Tensor& lengths = inputs.tensors.at(use.lengths->name);
    const auto bad = first_bad_length(
        sizes, use.k->name, lengths.size(), [&](std::int64_t i) { return lengths.integer(i); },
        [&](std::int64_t i) { return inputs.tensors.at((*use.pages)->name).integer(i); });
    if (bad)
      throw UserError(fmt::format("lengths '{}'", use.lengths->name), *bad,
                      use.pages ? "give lengths that the table has pages for, and pages that exist: those beyond a length are not read"
                                : "give 0 to as many keys as the cache has room for");
  }
}

} // namespace kiln

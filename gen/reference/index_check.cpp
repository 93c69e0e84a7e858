// Index check: every element against the rows, keys, pages and pairs that there are.
#include "gen/reference/index_check.h"
#include "gen/spec/attention.h"
#include "gen/spec/graph.h"
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <unordered_map>

namespace kiln {

IndexUse index_use(const Expr& node) {
  const Expr& index = node.operands()[1];
  const bool is_slice = index.op() == Op::unstack &&
                        std::all_of(index.shape().begin() + 1, index.shape().end(), [](const Dim& dim) { return same_size(dim, 1); });
  return {.index = index.op() == Op::unstack ? index.operands()[0] : index,
          .rows = node.operands()[0],
          .scatters = node.op() == Op::scatter,
          .checked = node->checked,
          .duplicates = node->duplicates,
          .first = is_slice ? index->first : 0,
          .step = is_slice ? index.operands()[0].shape()[1].size() : 1};
}

std::vector<IndexUse> index_uses(const KernelSpec& spec) {
  std::vector<IndexUse> uses;
  for (const Expr& node : nodes_in_order(spec))
    if (node.op() == Op::gather || node.op() == Op::scatter) uses.push_back(index_use(node));
  return uses;
}

std::vector<StateUse> state_uses(const KernelSpec& spec) {
  const std::vector<IndexUse> uses = index_uses(spec);
  std::vector<StateUse> states;
  for (const IndexUse& reads : uses)
    for (const IndexUse& writes : uses)
      if (!reads.scatters && writes.scatters && reads.rows->name == writes.rows->name &&
          (reads.index->name != writes.index->name || reads.step != 1))
        states.push_back({reads, writes});
  return states;
}

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

CacheSizes cache_sizes(const LengthUse& use, const SizeOf& size_of) {
  if (!use.pages) return {.keys = size_of(use.k.shape()[1])};
  const std::int64_t page = size_of(use.k.shape()[1]), of_one = size_of(use.pages->shape()[1]);
  return {.keys = page * of_one, .pages = size_of(use.k.shape()[0]), .page = page, .pages_of_one = of_one};
}

SortedPairs sort_pairs(std::span<const std::int64_t> experts, std::int64_t count) {
  const auto bucket = [&](std::int64_t pair) {
    const std::int64_t expert = experts[static_cast<std::size_t>(pair)];
    return expert < 0 || expert >= count ? count : expert;
  };
  SortedPairs sorted;
  sorted.order.resize(experts.size());
  std::iota(sorted.order.begin(), sorted.order.end(), std::int64_t{0});
  std::ranges::stable_sort(sorted.order, {}, bucket);
  for (std::int64_t e = 0; e <= count; ++e)
    sorted.offsets.push_back(std::ranges::count_if(sorted.order, [&](std::int64_t pair) { return bucket(pair) < e; }));
  return sorted;
}

std::vector<ExpertUse> expert_uses(const KernelSpec& spec) {
  std::vector<ExpertUse> uses;
  for (const Expr& node : nodes_in_order(spec))
    if (info(node.op()).kind == OpKind::experts) uses.push_back({node.operands()[1], node.operands()[2]});
  return uses;
}

namespace {

// Pages may lie in any order, and be shared. `pages` is there if the cache has any.
std::optional<std::string> first_bad_length(const CacheSizes& sizes, const std::string& k, const CountedIndex& lengths,
                                            const std::optional<CountedIndex>& pages) {
  for (std::int64_t s = 0; s < lengths.count; ++s) {
    const std::int64_t keys = lengths.at(s);
    if (keys < 0 || keys > sizes.keys) return fmt::format("length {} is {}, and a sequence has room for {} keys", s, keys, sizes.keys);
    for (std::int64_t p = 0; sizes.page && p * sizes.page < keys; ++p)
      if (const std::int64_t at = pages->at(s * sizes.pages_of_one + p); at < 0 || at >= sizes.pages)
        return fmt::format("page {} of sequence {} is {}, and {} has {} pages", p, s, at, k, sizes.pages);
  }
  return {};
}

// Every pair has to stand in the part of one expert.
std::optional<std::string> first_bad_pair(const CountedIndex& order, const CountedIndex& offsets) {
  const std::int64_t pairs = order.count, experts = offsets.count - 1;
  if (offsets.at(0) != 0) return fmt::format("offset 0 is {}, and the first expert begins at 0", offsets.at(0));
  for (std::int64_t e = 0; e < experts; ++e)
    if (offsets.at(e + 1) < offsets.at(e))
      return fmt::format("offset {} is {} and offset {} is {}: they must not fall", e, offsets.at(e), e + 1, offsets.at(e + 1));
  if (offsets.at(experts) != pairs)
    return fmt::format("offset {} is {}, and there are {} pairs: each goes to one of the {} experts", experts, offsets.at(experts), pairs,
                       experts);
  std::vector<std::int64_t> place(static_cast<std::size_t>(pairs), -1);
  for (std::int64_t at = 0; at < pairs; ++at) {
    const std::int64_t pair = order.at(at);
    if (pair < 0 || pair >= pairs) return fmt::format("element {} of the order is {}, and there are {} pairs", at, pair, pairs);
    std::int64_t& known = place[static_cast<std::size_t>(pair)];
    if (known >= 0) return fmt::format("pair {} stands at {} and at {}", pair, known, at);
    known = at;
  }
  return {};
}

std::optional<std::string> first_bad_index(const IndexUse& use, std::int64_t rows, const CountedIndex& index) {
  if (!use.scatters && rows == 0 && index.count > 0)
    return fmt::format("{} has no rows, and a gather reads one even if none is named", use.rows->name);
  std::unordered_map<std::int64_t, std::int64_t> writers; // of rows
  for (std::int64_t i = use.first; i < index.count; i += use.step) {
    const std::int64_t row = index.at(i);
    if (row < 0) continue;
    if (row >= rows && !use.checked) return fmt::format("element {} is {}, and {} has {} rows", i, row, use.rows->name, rows);
    if (!use.scatters || use.duplicates || row >= rows) continue;
    const auto [writer, is_new] = writers.try_emplace(row, i);
    if (!is_new)
      return fmt::format("elements {} and {} are both {}, a row of {} that is to be written once", writer->second, i, row, use.rows->name);
  }
  return {};
}

// The first row that one of the `owners`, indices of the first dimension, reads and another one writes.
std::optional<std::string> first_foreign_row(const StateUse& use, std::int64_t owners, const CountedIndex& read,
                                             const CountedIndex& written) {
  std::unordered_map<std::int64_t, std::int64_t> writers;
  for (std::int64_t i = 0; i < written.count; ++i)
    if (const std::int64_t row = written.at(i); row >= 0) writers.try_emplace(row, i);
  for (std::int64_t i = use.reads.first; i < read.count; i += use.reads.step) {
    const auto writer = writers.find(read.at(i));
    if (writer == writers.end() || writer->second / (written.count / owners) == i / (read.count / owners)) continue;
    return fmt::format(
        "element {} of it and element {} of {} are both {}, a row of {} that one part of the launch reads and another one writes", i,
        writer->second, use.writes.index->name, writer->first, use.reads.rows->name);
  }
  return {};
}

} // namespace

TrustedInputs TrustedInputs::of(const KernelSpec& spec) {
  return {length_uses(spec), expert_uses(spec), index_uses(spec), state_uses(spec)};
}

std::vector<Refusal> why_not_sound(const TrustedInputs& inputs, const std::function<std::optional<CountedIndex>(const Expr& input)>& read,
                                   const SizeOf& size_of) {
  std::vector<Refusal> refusals;
  const auto add = [&](const std::string& subject, const std::optional<std::string>& fact, const char* remedy) {
    if (fact) refusals.push_back({subject, *fact, remedy});
  };
  for (const LengthUse& use : inputs.lengths) {
    const auto lengths = read(use.lengths), pages = use.pages ? read(*use.pages) : std::nullopt;
    if (lengths && pages.has_value() == use.pages.has_value())
      add(fmt::format("lengths '{}'", use.lengths->name), first_bad_length(cache_sizes(use, size_of), use.k->name, *lengths, pages),
          use.pages ? "give lengths that the table has pages for, and pages that exist: those beyond a length are not read"
                    : "give 0 to as many keys as the cache has room for");
  }
  for (const ExpertUse& use : inputs.pairs) {
    const auto order = read(use.order), offsets = read(use.offsets);
    if (order && offsets)
      add(fmt::format("pairs '{}' with offsets '{}'", use.order->name, use.offsets->name), first_bad_pair(*order, *offsets),
          "give what expert_order and expert_offsets make of the experts: the kernel moe_sort");
  }
  for (const IndexUse& use : inputs.indices)
    if (const auto index = read(use.index))
      add(fmt::format("index '{}'", use.index->name), first_bad_index(use, size_of(use.rows.shape()[0]), *index),
          use.scatters
              ? "give rows that exist, each once, or a negative index to write none; or declare what may happen: checked, duplicates"
              : "give rows that exist, or a negative index for zeros; or declare what may happen: checked");
  for (const StateUse& use : inputs.states) {
    const auto reads = read(use.reads.index), writes = read(use.writes.index);
    if (reads && writes)
      add(fmt::format("index '{}'", use.reads.index->name), first_foreign_row(use, size_of(use.reads.index.shape()[0]), *reads, *writes),
          "let each index of the first dimension read rows that no other one writes");
  }
  return refusals;
}

void require_sound_indices(const KernelSpec& spec, const Inputs& inputs) {
  const auto sizes = dim_sizes(spec, inputs);
  const auto read = [&](const Expr& input) {
    const Tensor& tensor = inputs.tensors.at(input->name);
    return CountedIndex{tensor.size(), [&tensor](std::int64_t i) { return tensor.integer(i); }};
  };
  const auto refusals =
      why_not_sound(TrustedInputs::of(spec), read, [&](const Dim& dim) { return dim.is_dynamic() ? sizes.at(dim.name()) : dim.size(); });
  if (!refusals.empty()) throw UserError(refusals.front());
}

} // namespace kiln

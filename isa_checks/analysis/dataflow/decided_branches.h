// DecidedBranches: what a path knows of scalar comparisons, so that one which contradicts itself is not taken for a path.
#pragma once
#include "isa_checks/analysis/dataflow/flow_search.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace kiln::isa {

// A branch on SCC that an s_cmp or s_bitcmp of its block decides leaves an outcome behind; it holds until a register of the
// comparison is written. Comparisons of one register with constants are held against one another by value, all others by equality.
class DecidedBranches {
public:
  using Facts = std::uint32_t; // a set of outcomes, by number; 0: none

  DecidedBranches(const Program& program, const std::vector<Operands>& operands);

  // What holds whenever the block begins.
  Facts at(std::size_t block);
  // What holds behind the edge, with `facts` at the beginning of `from`; nothing: they exclude that edge.
  std::optional<Facts> take(Facts facts, std::size_t from, std::size_t to);
  bool within(Facts some, Facts all) const; // every outcome of the one is in the other
  // Whether the path, which begins in its first block, cannot be taken.
  bool excludes(const FlowPath& path);

private:
  enum class Relation : std::uint8_t { equal, below, less, bit }; // unsigned and signed less, bit b of a
  struct Value {
    std::uint16_t reg = 0, count = 0; // count 0: a constant
    std::uint32_t number = 0;
    auto operator<=>(const Value&) const = default;
  };
  struct Condition {
    Relation relation = Relation::equal;
    Value a, b;
    auto operator<=>(const Condition&) const = default;
  };
  using Scalars = std::bitset<reg::count - reg::sgpr>;
  struct BlockInfo {
    std::optional<std::uint32_t> condition; // of the branch at its end
    bool scc_when_true = true;              // SCC is set when the condition holds
    bool taken_when_set = true;             // the branch is taken when SCC is set
    bool survives = true;                   // nothing writes the condition's registers behind the comparison
    Scalars before, all;                    // written before the comparison, and in the whole block
  };
  using Set = std::vector<std::uint32_t>; // 2 * condition + (it holds), ascending

  void look_at(std::size_t block, const std::vector<Operands>& operands);
  std::optional<Condition> condition_of(std::size_t instruction, const Operands& operands, bool& negated) const;
  static std::optional<Value> value_of(const Operand& operand, std::uint16_t count);
  Facts number(const Set& set);
  Facts without(Facts facts, const Scalars& written);
  bool possible(const Set& set, std::uint32_t outcome) const;
  bool holds(const Condition& c, std::uint32_t x) const;
  static bool reads(const Condition& c, const Scalars& written);
  void solve();

  const Program& p_;
  std::vector<Condition> conditions_;
  std::map<Condition, std::uint32_t> by_condition_;
  std::vector<BlockInfo> blocks_;
  std::vector<Set> sets_;
  std::map<Set, Facts> by_set_;
  std::vector<std::optional<Facts>> in_; // by block; empty until asked for
};

} // namespace kiln::isa

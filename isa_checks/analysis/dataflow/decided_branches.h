// DecidedBranches: what a path knows of scalar comparisons, so that one which contradicts itself is not taken for a path.
#pragma once
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include <algorithm>
#include <bitset>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace kiln::isa {

// The blocks that a path goes through, the first one holding where it begins.
using FlowPath = std::vector<std::size_t>;

// A branch on SCC that an s_cmp or s_bitcmp of its block decides leaves an outcome behind; it holds until a register of the
// comparison is written. Comparisons of one register with constants are held against one another by value, all others by equality.
class DecidedBranches {
public:
  using Facts = std::uint32_t; // a set of outcomes, by number; 0: none

  DecidedBranches(const Program& program, const std::vector<Operands>& operands) : p_(program), blocks_(program.blocks.size()), sets_(1) {
    by_set_[{}] = 0;
    for (std::size_t b = 0; b < p_.blocks.size(); ++b) look_at(b, operands);
  }

  // What holds whenever the block begins.
  Facts at(std::size_t block) {
    if (in_.empty()) solve();
    return in_[block].value_or(0);
  }

  // What holds behind the edge, with `facts` at the beginning of `from`; nothing: they exclude that edge.
  std::optional<Facts> take(Facts facts, std::size_t from, std::size_t to) {
    const BlockInfo& info = blocks_[from];
    const Block& block = p_.blocks[from];
    if (!info.condition || block.successors.size() != 2) return without(facts, info.all);
    const bool taken = p_.blocks[to].begin != block.end;
    const std::uint32_t outcome = 2 * *info.condition + ((taken == info.taken_when_set) == info.scc_when_true ? 1U : 0U);
    if (!possible(sets_[without(facts, info.before)], outcome)) return std::nullopt;
    const Facts left = without(facts, info.all);
    if (!info.survives || sets_[left].size() >= max_outcomes) return left;
    Set set = sets_[left];
    const auto at = std::ranges::lower_bound(set, outcome);
    if (at != set.end() && *at == outcome) return left;
    set.insert(at, outcome);
    return number(set);
  }

  // Whether every outcome of the one is in the other.
  bool within(Facts some, Facts all) const { return some == 0 || some == all || std::ranges::includes(sets_[all], sets_[some]); }

  // Whether the path, which begins in its first block, cannot be taken.
  bool excludes(const FlowPath& path) {
    if (path.size() < 2) return false;
    Facts facts = at(path.front());
    for (std::size_t n = 0; n + 1 < path.size(); ++n) {
      const auto next = take(facts, path[n], path[n + 1]);
      if (!next) return true;
      facts = *next;
    }
    return false;
  }

private:
  static constexpr std::size_t max_outcomes = 32;  // that a path keeps; what comes beyond is forgotten
  static constexpr std::size_t max_sets = 100'000; // likewise; real kernels stay far below

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

  void look_at(std::size_t block, const std::vector<Operands>& operands) {
    const Block& range = p_.blocks[block];
    BlockInfo& info = blocks_[block];
    const auto add = [&](Scalars& set, std::size_t i) {
      for (const RegisterRange w : p_.instructions[i].use.writes())
        for (std::uint16_t r = w.first; r < w.first + w.count; ++r)
          if (r >= reg::sgpr && r < reg::count) set.set(r - reg::sgpr);
    };
    std::size_t compare = nothing; // the last that writes SCC
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (p_.instructions[i].use.writes_any({reg::scc, 1})) {
        compare = i;
        info.before = info.all;
      }
      add(info.all, i);
      if (p_.instructions[i].flow == Flow::call) info.all.set();
    }
    const std::string_view branch = p_.instructions[range.end - 1].mnemonic;
    if (compare == nothing || !branch.starts_with("s_cbranch_scc")) return;
    bool negated = false;
    const auto condition = condition_of(compare, operands[compare], negated);
    if (!condition) return;
    const auto [at, fresh] = by_condition_.try_emplace(*condition, static_cast<std::uint32_t>(conditions_.size()));
    if (fresh) conditions_.push_back(*condition);
    info.condition = at->second;
    info.scc_when_true = !negated;
    info.taken_when_set = branch.ends_with("1");
    Scalars behind;
    for (std::size_t i = compare; i < range.end; ++i) add(behind, i);
    info.survives = !reads(*condition, behind);
  }

  // Every comparison as one of `equal`, `below`, `less` or `bit`, or as the negation of one.
  std::optional<Condition> condition_of(std::size_t instruction, const Operands& o, bool& negated) const {
    std::string_view m = p_.instructions[instruction].mnemonic;
    if (o.count < 2) return std::nullopt;
    const bool wide = m.ends_with("64");
    auto a = value_of(o[0], wide ? 2 : 1), b = value_of(o[1], wide ? 2 : 1);
    if (!a || !b) return std::nullopt;
    if (m.starts_with("s_bitcmp")) {
      negated = m.starts_with("s_bitcmp0");
      return Condition{Relation::bit, *a, *b};
    }
    const std::string_view front = m.starts_with("s_cmpk_") ? "s_cmpk_" : "s_cmp_";
    if (!m.starts_with(front)) return std::nullopt;
    if (front == "s_cmpk_" && m.ends_with("_i32") && b->count == 0) // 16 bits, signed
      b->number = static_cast<std::uint32_t>(static_cast<std::int16_t>(b->number));
    m.remove_prefix(front.size());
    const std::string_view relation = m.substr(0, 2);
    if (relation == "eq" || relation == "lg") {
      negated = relation == "lg";
      return Condition{Relation::equal, std::min(*a, *b), std::max(*a, *b)};
    }
    const Relation order = m.ends_with("_i32") ? Relation::less : Relation::below;
    negated = relation == "ge" || relation == "le";
    if (relation == "gt" || relation == "le") std::swap(*a, *b); // a > b is b < a, a <= b is not b < a
    return Condition{order, *a, *b};
  }

  static std::optional<Value> value_of(const Operand& operand, std::uint16_t count) {
    if (operand.is(Operand::Kind::number)) return Value{0, 0, static_cast<std::uint32_t>(operand.number)};
    if (!operand.is(Operand::Kind::registers) || operand.registers.vector() || operand.registers.first >= reg::exec) return std::nullopt;
    return Value{operand.registers.first, count, 0};
  }

  Facts number(const Set& set) {
    if (sets_.size() >= max_sets && !by_set_.contains(set)) return 0;
    const auto [at, fresh] = by_set_.try_emplace(set, static_cast<Facts>(sets_.size()));
    if (fresh) sets_.push_back(set);
    return at->second;
  }

  Facts without(Facts facts, const Scalars& written) {
    if (facts == 0 || written.none()) return facts;
    Set set = sets_[facts];
    std::erase_if(set, [&](std::uint32_t outcome) { return reads(conditions_[outcome / 2], written); });
    return number(set);
  }

  // Whether the outcome may come together with those of the set. For one register and constants, some value has to satisfy them all,
  // and between the constants nothing changes.
  bool possible(const Set& set, std::uint32_t outcome) const {
    if (std::ranges::binary_search(set, outcome ^ 1U)) return false;
    const Condition& c = conditions_[outcome / 2];
    if (c.a.count + c.b.count != 1 || c.relation == Relation::bit) return true;
    const std::uint16_t reg = std::max(c.a.reg, c.b.reg);
    std::vector<std::uint32_t> of_register{outcome}, values{0, 0x7fffffff, 0x80000000, ~std::uint32_t{0}};
    for (const std::uint32_t other : set) {
      const Condition& d = conditions_[other / 2];
      if (d.a.count + d.b.count == 1 && d.relation != Relation::bit && std::max(d.a.reg, d.b.reg) == reg) of_register.push_back(other);
    }
    for (const std::uint32_t one : of_register) {
      const Condition& d = conditions_[one / 2];
      const std::uint32_t k = d.a.count == 0 ? d.a.number : d.b.number;
      values.insert(values.end(), {k - 1, k, k + 1});
    }
    return std::ranges::any_of(values, [&](std::uint32_t x) {
      return std::ranges::all_of(of_register, [&](std::uint32_t one) { return holds(conditions_[one / 2], x) == ((one & 1U) != 0); });
    });
  }

  // With x in the place of the register.
  bool holds(const Condition& c, std::uint32_t x) const {
    const std::uint32_t a = c.a.count > 0 ? x : c.a.number, b = c.b.count > 0 ? x : c.b.number;
    switch (c.relation) {
    case Relation::equal: return a == b;
    case Relation::below: return a < b;
    case Relation::less: return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b);
    case Relation::bit: return (a >> (b & 31U) & 1U) != 0;
    }
    return false;
  }

  static bool reads(const Condition& c, const Scalars& written) {
    for (const Value& v : {c.a, c.b})
      for (std::uint16_t n = 0; n < v.count; ++n)
        if (written.test(static_cast<std::size_t>(v.reg + n - reg::sgpr))) return true;
    return false;
  }

  void solve() {
    in_.assign(p_.blocks.size(), std::nullopt);
    if (p_.blocks.empty()) return;
    in_[p_.entry] = 0;
    constexpr int max_rounds = 64; // beyond, nothing is claimed
    for (int round = 0; round < max_rounds; ++round) {
      bool changed = false;
      for (const std::size_t from : p_.order) {
        if (!in_[from]) continue;
        for (const std::size_t to : p_.blocks[from].successors) {
          const auto out = take(*in_[from], from, to);
          if (!out) continue;
          Facts both = *out;
          if (in_[to] && *in_[to] != *out) {
            Set shared;
            std::ranges::set_intersection(sets_[*in_[to]], sets_[*out], std::back_inserter(shared));
            both = number(shared);
          }
          changed = changed || in_[to] != both;
          in_[to] = both;
        }
      }
      if (!changed) return;
    }
    in_.assign(p_.blocks.size(), Facts{0});
  }

  const Program& p_;
  std::vector<Condition> conditions_;
  std::map<Condition, std::uint32_t> by_condition_;
  std::vector<BlockInfo> blocks_;
  std::vector<Set> sets_;
  std::map<Set, Facts> by_set_;
  std::vector<std::optional<Facts>> in_; // by block; empty until asked for
};

} // namespace kiln::isa

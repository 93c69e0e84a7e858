// Collecting memory instructions.
#include "isa_checks/analysis/memory_accesses.h"
#include <algorithm>
#include <bit>
#include <bitset>
#include <numeric>

namespace kiln::isa {
namespace {

constexpr std::uint64_t lanes = 64;

class Collector {
public:
  Collector(const Program& program, const std::vector<Operands>& operands, const LaneAddresses& addresses, const TargetFacts& target)
      : p_(program), operands_(operands), addresses_(addresses), target_(target) {}

  MemoryAnalysis run() {
    find_advanced();
    MemoryAnalysis result;
    result.addresses_complete = addresses_.complete;
    for (std::size_t b = 0; b < p_.blocks.size(); ++b)
      for (std::size_t i = p_.blocks[b].begin; i < p_.blocks[b].end; ++i)
        if (const auto op = p_.instructions[i].memory) result.accesses.push_back(access(i, b, *op));
    result.loops.resize(p_.loops.size() + 1);
    for (std::size_t l = 0; l < p_.loops.size(); ++l) result.loops[l].loop = l;
    for (const MemoryAccess& a : result.accesses) {
      add(a, nothing, result.loops.back());
      for (std::size_t l = a.loop; l != nothing; l = p_.loops[l].parent) add(a, l, result.loops[l]);
    }
    return result;
  }

private:
  MemoryAccess access(std::size_t i, std::size_t block, const MemoryOp& op) const {
    const Operands& o = operands_[i];
    MemoryAccess a{.instruction = i, .loop = p_.blocks[block].loop, .op = op, .banks = {}, .coalescing = {}};
    a.sc0 = o.has("sc0") || o.has("glc");
    a.sc1 = o.has("sc1") || o.has("scc");
    a.nt = o.has("nt") || o.has("slc");
    if (op.space == MemorySpace::scalar) return a;
    const bool result_first = p_.instructions[i].use.write_count > 0;
    a.returns = op.direction == MemoryDirection::atomic && result_first;
    place_registers(a, o, result_first);
    a.saddr = op.space == MemorySpace::global && o.count > 0 && o[o.count - 1U].is(Operand::Kind::registers) &&
              !o[o.count - 1U].registers.vector();
    if (const LaneAddress* known = addresses_.find(i)) evaluate(a, *known, o);
    return a;
  }

  // Loads and atomics that return: result, address, data. Stores to buffers: data, address. Other stores: address, data.
  void place_registers(MemoryAccess& a, const Operands& o, bool result_first) const {
    const auto vector_at = [&](std::size_t at) {
      return at < o.count && o[at].is(Operand::Kind::registers) && o[at].registers.vector() ? o[at].registers : RegisterRange{};
    };
    const bool buffer = a.op.space == MemorySpace::buffer;
    const std::size_t address = buffer ? (a.op.to_lds ? 0 : 1) : result_first ? 1 : 0;
    a.address = vector_at(address);
    if (a.op.to_lds) return;
    a.data = vector_at(buffer || (result_first && a.op.direction == MemoryDirection::load) ? 0 : address + 1);
  }

  void evaluate(MemoryAccess& a, const LaneAddress& known, const Operands& o) const {
    a.lanes_known = known.active.has_value();
    const std::uint64_t active = known.active.value_or(~std::uint64_t{0});
    if (a.op.space == MemorySpace::lds) {
      a.banks = banks(a.op, known.value, active, o, p_.instructions[a.instruction].mnemonic);
    } else if (active != 0) {
      a.coalescing = coalesce(known.value, active, a.op.bytes);
    }
  }

  BankPasses banks(const MemoryOp& op, const LaneValue& value, std::uint64_t active, const Operands& o, std::string_view mnemonic) const {
    const bool pair = mnemonic.starts_with("ds_read2") || mnemonic.starts_with("ds_write2") || mnemonic.starts_with("ds_wrxchg2");
    const bool far = mnemonic.find("st64") != std::string_view::npos; // offsets count 64 values
    const bool store = op.direction == MemoryDirection::store;
    std::array<std::uint64_t, lanes> at{};
    const auto passes = [&](std::uint32_t offset, int bytes) {
      for (std::size_t i = 0; i < lanes; ++i) at[i] = static_cast<std::uint32_t>(value.lane[i] + offset);
      return lds_bank_passes(target_.lds_read_banks, store, bytes, at, active);
    };
    if (!pair) return passes(static_cast<std::uint32_t>(o.value("offset").value_or(0)), op.bytes);
    const auto unit = static_cast<std::uint32_t>(op.bytes / 2) * (far ? 64 : 1);
    BankPasses sum = passes(static_cast<std::uint32_t>(o.value("offset0").value_or(0)) * unit, op.bytes / 2);
    const BankPasses second = passes(static_cast<std::uint32_t>(o.value("offset1").value_or(0)) * unit, op.bytes / 2);
    sum.needed += second.needed;
    sum.ideal += second.ideal;
    sum.worst = std::max(sum.worst, second.worst);
    return sum;
  }

  Coalescing coalesce(const LaneValue& value, std::uint64_t active, int bytes) const {
    Coalescing c;
    c.lanes = std::popcount(active);
    c.step = value.step();
    std::vector<std::int64_t> starts;
    const auto first = static_cast<std::size_t>(std::countr_zero(active));
    for (std::size_t i = first; i < lanes; ++i) // lanes lie less than 2 GiB apart
      if ((active >> i & 1U) != 0) starts.push_back(static_cast<std::int32_t>(value.lane[i] - value.lane[first]));
    std::sort(starts.begin(), starts.end());
    const std::int64_t base = starts.front();
    std::int64_t end = base;
    for (const std::int64_t s : starts) {
      c.useful_bytes += static_cast<int>(std::max<std::int64_t>(0, s + bytes - std::max(s, end)));
      end = std::max(end, s + bytes);
    }
    c.lines64 = lines(starts, base, bytes, 64);
    c.lines128 = lines(starts, base, bytes, 128);
    return c;
  }

  static int lines(const std::vector<std::int64_t>& starts, std::int64_t base, int bytes, std::int64_t size) {
    int count = 0;
    std::int64_t next = 0; // the first line that was not counted
    for (const std::int64_t s : starts) {
      const std::int64_t from = std::max((s - base) / size, next), to = (s - base + bytes - 1) / size;
      if (to < from) continue;
      count += static_cast<int>(to - from + 1);
      next = to + 1;
    }
    return count;
  }

  void add(const MemoryAccess& a, std::size_t loop, LoopTraffic& t) const {
    const std::uint64_t bytes = static_cast<std::uint64_t>(a.op.bytes) * (a.op.space == MemorySpace::scalar ? 1 : lanes);
    const bool load = a.op.direction != MemoryDirection::store, store = a.op.direction != MemoryDirection::load;
    switch (a.op.space) {
    case MemorySpace::scalar: t.scalar += bytes; return;
    case MemorySpace::lds:
      t.lds_read += load ? bytes : 0;
      t.lds_written += store ? bytes : 0;
      return;
    case MemorySpace::scratch: return;
    case MemorySpace::flat: ++t.flat; break;
    case MemorySpace::global: t.missed_saddr += loop != nothing && !a.saddr && advances(a.address, loop); break;
    case MemorySpace::buffer: break;
    }
    t.loaded += load ? bytes : 0;
    t.stored += store ? bytes : 0;
    t.lds_written += a.op.to_lds ? bytes : 0;
  }

  // Registers that a loop changes in place, as an address that it advances.
  void find_advanced() {
    advanced_.resize(p_.loops.size());
    for (const Block& block : p_.blocks)
      if (block.loop != nothing)
        for (std::size_t i = block.begin; i < block.end; ++i)
          for (const RegisterRange range : p_.instructions[i].use.writes())
            if (p_.instructions[i].use.reads_any(range))
              for (std::size_t r = range.first; r < std::min<std::size_t>(range.first + range.count, reg::count); ++r)
                advanced_[block.loop].set(r);
    std::vector<std::size_t> inner_first(p_.loops.size());
    std::iota(inner_first.begin(), inner_first.end(), std::size_t{0});
    std::stable_sort(inner_first.begin(), inner_first.end(),
                     [&](std::size_t a, std::size_t b) { return p_.loops[a].depth > p_.loops[b].depth; });
    for (const std::size_t l : inner_first)
      if (p_.loops[l].parent != nothing) advanced_[p_.loops[l].parent] |= advanced_[l];
  }

  bool advances(RegisterRange address, std::size_t loop) const {
    for (std::size_t r = address.first; r < std::size_t{address.first} + address.count; ++r)
      if (advanced_[loop].test(r)) return true;
    return false;
  }

  const Program& p_;
  const std::vector<Operands>& operands_;
  const LaneAddresses& addresses_;
  const TargetFacts& target_;
  std::vector<std::bitset<reg::count>> advanced_; // by loop
};

} // namespace

const MemoryAccess* MemoryAnalysis::find(std::size_t instruction) const {
  const auto at = std::lower_bound(accesses.begin(), accesses.end(), instruction,
                                   [](const MemoryAccess& a, std::size_t i) { return a.instruction < i; });
  return at != accesses.end() && at->instruction == instruction ? &*at : nullptr;
}

MemoryAnalysis analyse_memory(const Program& program, const std::vector<Operands>& operands, const LaneAddresses& addresses,
                              const TargetFacts& target) {
  return Collector(program, operands, addresses, target).run();
}

} // namespace kiln::isa

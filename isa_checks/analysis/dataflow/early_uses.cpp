// Following each operation forward until a wait completes it or something uses its registers.
#include "isa_checks/analysis/dataflow/early_uses.h"
#include "isa_checks/analysis/dataflow/path_time.h"
#include "isa_checks/analysis/waits/wait_state.h"
#include "isa_checks/target/hazards.h"
#include <algorithm>
#include <cstdint>
#include <span>

namespace kiln::isa {
namespace {

// How operations complete; those of one order complete in the order of their issue.
enum class Order : std::uint8_t { none, vector_memory, lds, scalar, flat };

Order order_of(const Instruction& instruction) {
  const CounterUse use = counter_use(instruction);
  if (use.vm) return use.lgkm ? Order::flat : Order::vector_memory;
  if (!use.lgkm || use.gds) return Order::none;
  if (!use.unordered) return Order::lds;
  return instruction.kind == InstructionClass::smem ? Order::scalar : Order::none;
}

struct Step {
  Order order;
  std::optional<WaitCounts> wait;
  std::uint64_t touched; // signature of what it reads and writes
};

// A bit for each 8 registers, modulo 64: ranges without a common bit have no register in common.
std::uint64_t signature(std::span<const RegisterRange> ranges) {
  std::uint64_t bits = 0;
  for (const RegisterRange r : ranges)
    for (unsigned n = r.first / 8U; n <= (r.first + r.count - 1U) / 8U; ++n) bits |= std::uint64_t{1} << (n & 63U);
  return bits;
}

class EarlyUseFinder {
public:
  EarlyUseFinder(const Program& program, const std::vector<Operands>& operands) : p_(program), search_(program, operands) {
    steps_.reserve(program.instructions.size());
    for (std::size_t i = 0; i < program.instructions.size(); ++i)
      steps_.push_back({order_of(program.instructions[i]), wait_counts(program.instructions[i]),
                        signature(program.instructions[i].use.reads()) | signature(program.instructions[i].use.writes())});
  }

  EarlyUses run() {
    EarlyUses result;
    for (const Block& block : p_.blocks)
      if (block.reachable)
        for (std::size_t i = block.begin; i < block.end && !search_.exhausted(); ++i)
          if (steps_[i].order != Order::none && p_.instructions[i].use.write_count > 0) follow(i, result.list);
    if (search_.exhausted()) return {.list = {}, .complete = false};
    return result;
  }

private:
  // The state counts operations of the same order that were issued since; of flat operations, bits say what was waited for.
  void follow(std::size_t operation, std::vector<EarlyUse>& list) {
    const Order order = steps_[operation].order;
    const std::uint64_t results = signature(p_.instructions[operation].use.writes());
    EarlyUse found{.operation = operation, .path = {}};
    unsigned waited = 0; // of a flat operation
    found.path = search_.run(operation, 0, [&](std::size_t i, unsigned& state) {
      const Step& step = steps_[i];
      if (step.wait) return completes(order, *step.wait, state) ? FlowStep::stop : FlowStep::go_on;
      const bool in_order = step.order == order && (order == Order::vector_memory || order == Order::lds);
      for (const RegisterRange result : p_.instructions[operation].use.writes()) {
        if ((step.touched & results) == 0) break;
        const bool writes = p_.instructions[i].use.writes_any(result);
        const bool keeps_half = writes && p_.instructions[i].mnemonic.find("d16") != std::string::npos;
        const bool reads = p_.instructions[i].use.reads_any(result) && !(in_order && keeps_half);
        if (!writes && !reads) continue;
        if (!reads && p_.instructions[i].text == p_.instructions[operation].text && p_.block_of(i) == p_.block_of(operation))
          return FlowStep::stop; // the same load again: both bring the same
        // The register is the later one's from here on. A flat load of device memory is in order with other loads of it, which compilers
        // rely on too (LLVM, SIInsertWaitcnts.cpp, hasDifferentVGPRVmemTypes).
        const bool memory_order = order == Order::flat && (step.order == Order::vector_memory || step.order == Order::flat);
        if (!reads && (in_order || memory_order)) return FlowStep::stop;
        found.use = i;
        waited = state;
        found.overwrites = !reads;
        found.counter =
            order == Order::vector_memory || (order == Order::flat && (state & 1U) == 0) ? WaitCounter::vmcnt : WaitCounter::lgkmcnt;
        return FlowStep::found;
      }
      if (in_order && ++state >= capacity(order)) return FlowStep::stop; // the hardware stalls until the oldest is complete
      return FlowStep::go_on;
    });
    if (!found.path.empty() && !(order == Order::flat && saturates(found, waited))) list.push_back(std::move(found));
  }

  // What no wait has completed of a flat operation is complete behind as many younger operations as its counter holds.
  bool saturates(const EarlyUse& found, unsigned waited) const {
    const auto complete = [&](unsigned bit, WaitCounter counter) {
      return (waited & bit) != 0 ||
             operations_on(p_, found.path, found.operation, found.use, counter) >= counter_capacity[static_cast<std::size_t>(counter)];
    };
    return complete(1, WaitCounter::vmcnt) && complete(2, WaitCounter::lgkmcnt);
  }

  static unsigned capacity(Order order) {
    return static_cast<unsigned>(
        counter_capacity[static_cast<std::size_t>(order == Order::lds ? WaitCounter::lgkmcnt : WaitCounter::vmcnt)]);
  }

  static bool completes(Order order, const WaitCounts& wait, unsigned& state) {
    const auto down_to = [](const std::optional<int>& count, unsigned younger) {
      return count && static_cast<unsigned>(*count) <= younger;
    };
    switch (order) {
    case Order::vector_memory: return down_to(wait.vmcnt, state);
    case Order::lds: return down_to(wait.lgkmcnt, state);
    case Order::scalar: return down_to(wait.lgkmcnt, 0);
    default: state |= (down_to(wait.vmcnt, 0) ? 1U : 0U) | (down_to(wait.lgkmcnt, 0) ? 2U : 0U); return state == 3;
    }
  }

  const Program& p_;
  FlowSearch search_;
  std::vector<Step> steps_;
};

bool vector_alu(InstructionClass c) {
  return c == InstructionClass::valu || c == InstructionClass::trans || c == InstructionClass::packed || c == InstructionClass::dot ||
         c == InstructionClass::mfma;
}

bool wide_store(const MemoryAccess& access) {
  return access.op.direction == MemoryDirection::store && access.op.space != MemorySpace::lds && access.op.bytes > 8 &&
         access.data.count > 2;
}

} // namespace

EarlyUses early_uses(const Program& program, const std::vector<Operands>& operands) { return EarlyUseFinder(program, operands).run(); }

bool has_scalar_offset(const MemoryAccess& access, const Operands& operands) {
  if (access.op.space != MemorySpace::buffer || operands.count == 0) return false;
  const Operand& last = operands[operands.count - 1U];
  return last.is(Operand::Kind::registers) && !last.registers.vector();
}

EarlyUses early_overwrites(const Program& program, const std::vector<Operands>& operands, const MemoryAnalysis& memory,
                           const TargetFacts& target) {
  FlowSearch search(program, operands);
  EarlyUses result;
  const auto follow = [&](std::size_t store, RegisterRange data, bool gds, int states) {
    EarlyUse found{.operation = store, .counter = WaitCounter::expcnt, .overwrites = true, .path = {}};
    // The state: wait states that have passed, and 8 times the vector memory operations that are younger.
    found.path = search.run(store, 0, [&](std::size_t i, unsigned& state) {
      const Instruction& instruction = program.instructions[i];
      if (const auto wait = wait_counts(instruction)) {
        if (gds && wait->expcnt == 0) return FlowStep::stop;
        if (!gds && wait->vmcnt && static_cast<unsigned>(*wait->vmcnt) <= state / 8) return FlowStep::stop;
      }
      const InstructionClass c = instruction.kind;
      if (program.instructions[i].use.writes_any(data) && (gds || vector_alu(c))) {
        found.use = i;
        return FlowStep::found;
      }
      if (gds) return FlowStep::go_on;
      if (counter_use(instruction).vm && state / 8 < 7) state += 8;
      const auto passes = c == InstructionClass::nop && operands[i].count > 0 ? static_cast<unsigned>(operands[i][0].number & 15U) + 1 : 1;
      state += std::min(passes, 7 - state % 8);
      return state % 8 >= static_cast<unsigned>(states) ? FlowStep::stop : FlowStep::go_on;
    });
    if (!found.path.empty()) result.list.push_back(std::move(found));
  };
  for (const MemoryAccess& access : memory.accesses)
    if (const int states = wide_store_states(target, has_scalar_offset(access, operands[access.instruction]));
        states > 0 && wide_store(access))
      follow(access.instruction, access.data, false, states);
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    if (program.instructions[i].mnemonic.starts_with("ds_gws"))
      for (const RegisterRange data : program.instructions[i].use.reads())
        if (data.vector()) follow(i, data, true, 0);
  if (search.exhausted()) return {.list = {}, .complete = false};
  return result;
}

} // namespace kiln::isa

// Following lane values through the flow graph: a forward fixpoint in which a state is a number for each register, the
// number naming a value that is kept once.
#include "isa_checks/analysis/lanes/lane_addresses.h"
#include "isa_checks/analysis/lanes/lane_step.h"
#include "isa_checks/analysis/work_list.h"
#include <algorithm>
#include <bit>

namespace kiln::isa {
namespace {

// Instructions interpreted in all, values kept in all: real kernels stay far below; hostile ones end here.
constexpr std::size_t max_steps_each = 64, max_values = 100'000;

// Bits of the numbers below `count`, from bit `from` on.
std::uint32_t bits_below(std::uint32_t count, int from) {
  const std::uint32_t all = count <= 1 ? 0 : std::bit_ceil(count) - 1;
  return all & (~std::uint32_t{0} << from);
}

// v0 at the entry: ids packed ten bits each (AMDGPUUsage, "Initial Kernel Execution State"). What the waves of a workgroup
// differ in is the unknown base.
Maybe workitem_id(const Kernel& kernel, const Resources& resources) {
  constexpr std::uint32_t lanes = wave_size, most = max_workgroup_size;
  LaneValue v;
  for (std::uint32_t i = 0; i < lanes; ++i) v.lane[i] = i;
  const auto& size = kernel.metadata ? kernel.metadata->required_workgroup_size : std::nullopt;
  const std::uint32_t x = size ? (*size)[0] : static_cast<std::uint32_t>(resources.workgroup_size);
  if (kernel.function || x == 0 || x > most || (!size && kernel.descriptor.workitem_id != 0)) return std::nullopt;
  const std::uint32_t y = size ? (*size)[1] : 1, z = size ? (*size)[2] : 1;
  if (y == 0 || z == 0 || y > most || z > most) return std::nullopt;
  const bool has_y = kernel.descriptor.workitem_id >= 1, has_z = kernel.descriptor.workitem_id >= 2;
  const std::uint32_t outer = (has_y ? bits_below(y, 0) << 10 : 0) | (has_z ? bits_below(z, 0) << 20 : 0);
  if (x % lanes == 0 || y * z == 1) { // a wave lies within one row
    v.mask = bits_below(x, std::countr_zero(lanes)) | outer;
    return v;
  }
  if (lanes % x != 0 || (z != 1 && y % (lanes / x) != 0)) return std::nullopt;
  for (std::uint32_t i = 0; i < lanes; ++i) v.lane[i] = i % x | (has_y ? (i / x) << 10 : 0);
  v.mask = outer & ~((lanes / x - 1) << 10);
  return v;
}

// v0 of one wave, where waves follow each other along x; nothing for other layouts.
Maybe workitem_id(const Kernel& kernel, const Resources& resources, std::uint32_t wave) {
  const Maybe any = workitem_id(kernel, resources);
  const std::uint32_t first = wave * static_cast<std::uint32_t>(LaneValue{}.lane.size());
  return any && (first & ~any->mask) == 0 && kernel.descriptor.workitem_id == 0 ? add(LaneValue{any->lane, 0}, constant_value(first))
                                                                                : std::nullopt;
}

class Follower {
public:
  Follower(const Program& program, const std::vector<Operands>& operands) : p_(program), operands_(operands) {
    for (const Instruction& instruction : program.instructions) steps_.push_back(lane_step_of(instruction));
  }

  LaneAddresses run(const Maybe& id) { // v0 at the entry
    LaneAddresses result;
    if (p_.blocks.empty()) return result;
    LaneState start;
    start.set(reg::vgpr, values_.number(id));
    start.set(reg::exec, all_ones);
    start.set(reg::exec + 1, all_ones);
    in_.assign(p_.blocks.size(), std::nullopt);
    in_[p_.entry] = start;
    result.complete = solve();
    if (result.complete)
      for (std::size_t b = 0; b < p_.blocks.size(); ++b)
        if (in_[b]) run_block(b, *in_[b], [&](std::size_t i, const LaneState& state) { look(i, state, result.known); });
    return result;
  }

private:
  template <class Look> LaneState run_block(std::size_t block, LaneState state, Look look) {
    for (std::size_t i = p_.blocks[block].begin; i < p_.blocks[block].end; ++i) {
      look(i, state);
      apply_lane_step(steps_[i], p_.instructions[i], operands_[i], state, values_);
    }
    return state;
  }

  bool solve() {
    std::size_t budget = p_.instructions.size() * max_steps_each + 10'000;
    WorkList work(p_);
    work.add(p_.entry);
    while (!work.empty()) {
      const std::size_t b = work.take();
      const std::size_t cost = p_.blocks[b].end - p_.blocks[b].begin + 8; // a join costs, too
      if (cost > budget || values_.size() > max_values) return false;
      budget -= cost;
      const LaneState out = run_block(b, *in_[b], [](std::size_t, const LaneState&) {});
      for (const std::size_t to : p_.blocks[b].successors) {
        bool changed = !in_[to];
        if (changed) in_[to] = out;
        else changed = in_[to]->join(out, values_);
        if (changed) work.add(to);
      }
    }
    return true;
  }

  void look(std::size_t index, const LaneState& state, std::vector<LaneAddress>& known) {
    const auto op = p_.instructions[index].memory;
    if (!op || op->space == MemorySpace::scalar || op->space == MemorySpace::scratch) return;
    const auto address = address_of(*op, operands_[index], state);
    if (!address) return;
    known.push_back({index, *address, state.active(values_)});
  }

  Maybe value(const Operand& operand, const LaneState& state) const {
    if (!operand.is(Operand::Kind::registers)) return std::nullopt;
    return values_.value(state.get(operand.registers.first));
  }

  // The address operand: of DS and loads of flat and global the first after the result, of stores the first; of buffers
  // the one after the data.
  Maybe address_of(const MemoryOp& op, const Operands& o, const LaneState& state) const {
    const bool load = op.direction == MemoryDirection::load && !op.to_lds;
    const bool returns = op.direction == MemoryDirection::atomic && (o.has("sc0") || o.has("glc"));
    if (op.space == MemorySpace::lds) {
      const bool has_result = load || (op.direction == MemoryDirection::atomic && o.count > 2);
      return o.count > (has_result ? 1U : 0U) ? value(o[has_result ? 1 : 0], state) : std::nullopt;
    }
    if (op.space == MemorySpace::buffer) {
      if (o.has("idxen")) return std::nullopt; // stride and swizzle lie in the descriptor
      const std::size_t at = op.to_lds ? 0 : 1;
      if (at >= o.count) return std::nullopt;
      return o.has("offen") ? value(o[at], state) : Maybe(uniform_value());
    }
    const std::size_t at = load || returns ? 1 : 0;
    return at < o.count ? value(o[at], state) : std::nullopt;
  }

  const Program& p_;
  const std::vector<Operands>& operands_;
  std::vector<LaneStep> steps_;
  LaneValues values_;
  std::vector<std::optional<LaneState>> in_;
};

} // namespace

const LaneAddress* LaneAddresses::find(std::size_t instruction) const {
  const auto at =
      std::lower_bound(known.begin(), known.end(), instruction, [](const LaneAddress& a, std::size_t i) { return a.instruction < i; });
  return at != known.end() && at->instruction == instruction ? &*at : nullptr;
}

LaneAddresses lane_addresses(const Program& program, const std::vector<Operands>& operands, const Kernel& kernel,
                             const Resources& resources) {
  return Follower(program, operands).run(workitem_id(kernel, resources));
}

std::vector<LaneAddresses> lane_addresses_of(const std::vector<int>& waves, const Program& program, const std::vector<Operands>& operands,
                                             const Kernel& kernel, const Resources& resources) {
  Follower follower(program, operands);
  std::vector<LaneAddresses> result;
  for (const int wave : waves) result.push_back(follower.run(workitem_id(kernel, resources, static_cast<std::uint32_t>(wave))));
  return result;
}

} // namespace kiln::isa

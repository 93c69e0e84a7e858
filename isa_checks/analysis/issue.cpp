// Adding up what instructions cost.
#include "isa_checks/analysis/issue.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::isa {
namespace {

constexpr double wave_clocks = issue_clocks;
constexpr double quarter_rate = 16;
constexpr double wave_lanes = wave_size;
constexpr double simds = simds_per_cu;
constexpr double memory_path_bytes = 64; // the vector memory path of a CU, bytes per clock

bool is_quarter_rate(std::string_view m) {
  return m.starts_with("v_mul_lo_u32") || m.starts_with("v_mul_hi_u32") || m.starts_with("v_mul_hi_i32") ||
         m.starts_with("v_mad_u64_u32") || m.starts_with("v_mad_i64_i32");
}

// Operations of one lane; 0 for moves, conversions, comparisons and integer work.
double operations_of(std::string_view m) {
  if (!m.ends_with("_i32") && m.find("_f") == std::string_view::npos && m.find("bf16") == std::string_view::npos) return 0;
  const bool fused =
      m.find("fma") != std::string_view::npos || m.find("_mac") != std::string_view::npos || m.find("_mad_") != std::string_view::npos;
  const bool simple =
      m.find("_add_") != std::string_view::npos || m.find("_sub_") != std::string_view::npos || m.find("_mul_") != std::string_view::npos;
  if (m.starts_with("v_dot2")) return 4;
  if (m.starts_with("v_dot4")) return 8;
  if (m.starts_with("v_dot8")) return 16;
  if (m.ends_with("_i32")) return 0;
  return (fused ? 2 : simple ? 1 : 0) * (m.starts_with("v_pk_") ? 2 : 1);
}

} // namespace

std::string_view to_string(Pipe pipe) {
  static constexpr std::array<std::string_view, pipe_count> names{"salu", "valu", "trans", "matrix", "lds", "vector_memory"};
  return names[static_cast<std::size_t>(pipe)];
}

std::vector<double> block_weights(const Program& program) {
  std::vector<double> weights(program.blocks.size(), 0);
  for (std::size_t b = 0; b < weights.size(); ++b) {
    const Block& block = program.blocks[b];
    if (block.reachable) weights[b] = block.loop == nothing ? 1 : std::pow(10.0, std::min(program.loops[block.loop].depth, 6));
  }
  return weights;
}

InstructionCost instruction_cost(const Instruction& instruction, const MemoryAccess* access, const TargetFacts& target) {
  const std::string_view m = base_mnemonic(instruction.mnemonic);
  switch (instruction.kind) {
  case InstructionClass::salu:
  case InstructionClass::smem:
  case InstructionClass::branch: return {Pipe::salu, wave_clocks, 0};
  case InstructionClass::valu:
  case InstructionClass::packed:
  case InstructionClass::dot: return {Pipe::valu, is_quarter_rate(m) ? quarter_rate : wave_clocks, operations_of(m) * wave_lanes};
  case InstructionClass::trans: return {Pipe::trans, quarter_rate, 0};
  case InstructionClass::mfma: {
    const auto shape = matrix_shape(instruction, operands_of(instruction), target);
    return {Pipe::matrix, static_cast<double>(shape ? shape->cycles() : clocks_per_pass),
            shape ? static_cast<double>(shape->operations()) : 0};
  }
  case InstructionClass::vmem_load:
  case InstructionClass::vmem_store:
  case InstructionClass::vmem_atomic:
    return {Pipe::vector_memory, std::max(wave_clocks, (access ? access->op.bytes : 0) * wave_lanes / memory_path_bytes), 0};
  case InstructionClass::lds: {
    const double bytes = access ? access->op.bytes : 4; // lane exchanges move 4 B per lane
    const double ideal = std::max(1.0, bytes * wave_lanes / (4.0 * lds_write_banks));
    const bool known = access && access->banks && access->banks->needed > access->banks->ideal;
    return {Pipe::lds, known ? static_cast<double>(access->banks->needed) : ideal, 0};
  }
  default: return {};
  }
}

IssueEstimate estimate_issue(const Program& program, const MemoryAnalysis& memory, const std::vector<double>& weights,
                             const TargetFacts& target) {
  IssueEstimate result;
  result.loops.resize(program.loops.size() + 1);
  for (std::size_t l = 0; l < program.loops.size(); ++l) result.loops[l].loop = l;
  const double share = target.memory_gbs * 1e9 / (target.clock_mhz * 1e6) / target.compute_units; // bytes per clock
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    LoopIssue block; // one run
    for (std::size_t i = program.blocks[b].begin; i < program.blocks[b].end; ++i) {
      const MemoryAccess* access = memory.find(i);
      const InstructionCost cost = instruction_cost(program.instructions[i], access, target);
      const bool shared = cost.pipe == Pipe::lds || cost.pipe == Pipe::vector_memory;
      block.clocks[static_cast<std::size_t>(cost.pipe)] += cost.clocks * (shared ? simds : 1);
      block.operations += cost.operations * simds;
      block.nop_clocks += nop_states(program.instructions[i]) * wave_clocks;
      block.memory_bytes += access && is_device(access->op) ? access->op.bytes * wave_lanes * simds : 0;
    }
    const auto add_to = [&](LoopIssue& to, double times) {
      for (std::size_t p = 0; p < pipe_count; ++p) to.clocks[p] += block.clocks[p] * times;
      to.operations += block.operations * times;
      to.nop_clocks += block.nop_clocks * times;
      to.memory_bytes += block.memory_bytes * times;
    };
    add_to(result.loops.back(), weights[b]);
    for (std::size_t l = program.blocks[b].loop; l != nothing; l = program.loops[l].parent)
      add_to(result.loops[l], weights[b] / weights[program.loops[l].header]);
  }
  for (LoopIssue& l : result.loops) {
    l.memory_clocks = l.memory_bytes / share;
    l.busiest = static_cast<Pipe>(std::max_element(l.clocks.begin(), l.clocks.end()) - l.clocks.begin());
  }
  return result;
}

std::string to_text(const IssueEstimate& issue, const Program& program) {
  std::string text;
  for (const LoopIssue& l : issue.loops) {
    text += fmt::format("  {}:", l.loop == nothing ? "whole kernel, loops ten times a level" : program.loop_name(l.loop));
    for (std::size_t p = 0; p < pipe_count; ++p)
      if (l.clocks[p] > 0) text += fmt::format(" {} {:g}", to_string(static_cast<Pipe>(p)), l.clocks[p]);
    text += fmt::format(" clocks per CU; {:g} operations, {:g} B, {:.2f} a byte; ", l.operations, l.memory_bytes, l.intensity());
    text += l.memory_bound() ? fmt::format("bound by memory ({:.0f} clocks)\n", l.memory_clocks)
                             : fmt::format("bound by {} (memory takes {:.0f} clocks)\n", to_string(l.busiest), l.memory_clocks);
  }
  return text;
}

std::string to_json(const IssueEstimate& issue, const Program&) {
  using Json = nlohmann::ordered_json;
  Json json = Json::array();
  for (const LoopIssue& l : issue.loops) {
    Json clocks;
    for (std::size_t p = 0; p < pipe_count; ++p) clocks[std::string(to_string(static_cast<Pipe>(p)))] = l.clocks[p];
    json.push_back({{"loop", l.loop == nothing ? Json() : Json(l.loop)},
                    {"clocks", clocks},
                    {"nop_clocks", l.nop_clocks},
                    {"operations", l.operations},
                    {"memory_bytes", l.memory_bytes},
                    {"memory_clocks", l.memory_clocks},
                    {"operations_per_byte", l.intensity()},
                    {"bound", l.memory_bound() ? "memory" : to_string(l.busiest)}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace kiln::isa

// inspect: what the compiler made of a kernel, read from its code object.
#include "runtime/build/inspect.h"
#include "gen/error.h"
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/object/code_object.h"
#include "isa_checks/verdict/lint.h"
#include <fmt/format.h>
#include <set>

namespace kiln {
namespace {

const isa::Kernel& named_kernel(const isa::CodeObject& file, const CodeObject& object) {
  const isa::Kernel* kernel = file.find(object.name);
  if (kernel == nullptr)
    throw InternalError(fmt::format("the code object of {} for {} has no kernel of that name", object.name, object.arch));
  return *kernel;
}

} // namespace

isa::KernelFacts inspect(const CodeObject& object) {
  const isa::CodeObject file = isa::load_code_object(object.bytes, object.name);
  isa::Disassembler disassembler(file.target());
  return isa::kernel_facts(file, named_kernel(file, object), disassembler);
}

Inspection inspect(const CodeObject& object, const isa::Expectations& promised) {
  const isa::CodeObject file = isa::load_code_object(object.bytes, object.name);
  const isa::Kernel& kernel = named_kernel(file, object);
  isa::Disassembler disassembler(file.target());
  const isa::Program program = isa::build_program(kernel, disassembler);
  if (isa::needs_analysis(program, promised)) {
    isa::KernelAnalysis analysis = isa::analyse(file, kernel, disassembler, {.source_lines = false});
    isa::IsaReport report = isa::check_isa(analysis, promised);
    return {std::move(analysis.facts), std::move(report)};
  }
  isa::KernelFacts facts = isa::kernel_facts(file, kernel, program.instructions);
  isa::IsaReport report = isa::check_isa(program, facts, promised);
  return {std::move(facts), std::move(report)};
}

std::vector<isa::Finding> findings_of(const CodeObject& object) {
  const isa::CodeObject file = isa::load_code_object(object.bytes, object.name);
  isa::Disassembler disassembler(file.target());
  return isa::lint(isa::analyse(file, named_kernel(file, object), disassembler, {.source_lines = false}));
}

isa::Program program_of(const CodeObject& object) {
  const isa::CodeObject file = isa::load_code_object(object.bytes, object.name);
  isa::Disassembler disassembler(file.target());
  return isa::build_program(named_kernel(file, object), disassembler);
}

std::string assembly(const CodeObject& object) {
  const isa::CodeObject file = isa::load_code_object(object.bytes, object.name);
  const isa::Kernel& kernel = named_kernel(file, object);
  const std::vector<isa::Instruction> code = isa::Disassembler(file.target()).decode(kernel);
  std::set<std::uint64_t> labels;
  for (const isa::Instruction& instruction : code)
    if (instruction.branch_target) labels.insert(*instruction.branch_target);

  std::string text = fmt::format("; {} for {}: {} instructions, {} bytes; {}, {}\n{}:\n", object.name, file.target_id(), code.size(),
                                 kernel.code.size(), object.compiler, object.llvm, object.name);
  for (const isa::Instruction& instruction : code) {
    if (labels.contains(instruction.address)) text += fmt::format("L{:x}:\n", instruction.address);
    const std::string target = instruction.branch_target ? fmt::format(" -> L{:x}", *instruction.branch_target) : std::string();
    text += fmt::format("  {:<60} ; {:x}{}\n", instruction.text, instruction.address, target);
  }
  return text;
}

} // namespace kiln

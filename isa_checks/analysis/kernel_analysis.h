// KernelAnalysis: everything that is known of one kernel, in one value.
#pragma once
#include "isa_checks/analysis/concurrency.h"
#include "isa_checks/analysis/facts.h"
#include "isa_checks/analysis/issue.h"
#include "isa_checks/analysis/matrix_uses.h"
#include "isa_checks/analysis/memory_accesses.h"
#include "isa_checks/analysis/occupancy_report.h"
#include "isa_checks/analysis/waits/waits.h"
#include "isa_checks/decode/program.h"
#include "isa_checks/object/code_object.h"
#include "isa_checks/object/source_lines.h"
#include <map>
#include <string>

namespace kiln::isa {

struct AnalysisOptions {
  bool source_lines = true; // look up lines in the object's line table, where it has one, and labels in its symbol table
  // The object's, already read; null: they are read for this kernel. Worth giving for objects with many kernels.
  const SourceLines* lines = nullptr;
};

// Movable, not copyable: the operands point into the instructions' texts.
struct KernelAnalysis {
  KernelAnalysis() = default;
  KernelAnalysis(KernelAnalysis&&) = default;
  KernelAnalysis& operator=(KernelAnalysis&&) = default;

  const TargetFacts* target = nullptr; // never null in what analyse returns
  std::string object;                  // the code object's name
  Kernel kernel;
  KernelFacts facts;
  OccupancyReport occupancy;
  Program program;
  std::vector<Operands> operands; // by instruction
  std::vector<double> weights;    // by block: block_weights
  WaitAnalysis waits;
  std::vector<LoopConcurrency> concurrency;
  MemoryAnalysis memory; // LDS bank conflicts and coalescing included
  MatrixAnalysis matrix;
  IssueEstimate issue;                         // and roofline
  std::vector<SourceLine> lines;               // by instruction; empty when the object has no line table
  std::map<std::uint64_t, std::string> labels; // by address: symbols inside the kernel

  // The innermost loop around an instruction, or nothing.
  std::size_t loop_of(std::size_t instruction) const;
  bool is_innermost(std::size_t loop) const; // no loop lies inside it
  const Instruction& instruction(std::size_t index) const { return program.instructions[index]; }
  std::string_view mnemonic(std::size_t index) const { return program.instructions[index].mnemonic; }
  // The instructions of a loop, inner loops included, by address.
  std::vector<std::size_t> instructions_of(std::size_t loop) const { return program.instructions_of(program.loops[loop].blocks); }
};

// The result points into the bytes of `object`, which must live as long (a copy of it will do).
KernelAnalysis analyse(const CodeObject& object, const Kernel& kernel, Disassembler& disassembler, const AnalysisOptions& options = {});
KernelAnalysis analyse(const CodeObject& object, const Kernel& kernel, const AnalysisOptions& options = {});

std::string to_text(const KernelAnalysis& analysis);
std::string to_json(const KernelAnalysis& analysis); // one object, indented by 2

} // namespace kiln::isa

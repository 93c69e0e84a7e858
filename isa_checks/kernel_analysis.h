// KernelAnalysis: everything that is known of one kernel, in one value.
#pragma once
#include "isa_checks/code_object.h"
#include "isa_checks/facts.h"
#include "isa_checks/program.h"
#include "isa_checks/source_lines.h"
#include "isa_checks/waits.h"
#include <string>

namespace kiln::isa {

struct AnalysisOptions {
  bool source_lines = true; // look up lines in the object's line table, where it has one
};

struct KernelAnalysis {
  const TargetFacts* target = nullptr; // never null
  std::string object;                  // the code object's name
  Kernel kernel;
  KernelFacts facts;
  Program program;
  WaitAnalysis waits;
  std::vector<SourceLine> lines; // by instruction; empty when the object has no line table

  // The innermost loop around an instruction, or nothing.
  std::size_t loop_of(std::size_t instruction) const;
  bool is_innermost(std::size_t loop) const; // no loop lies inside it
};

// The result points into the bytes of `object`, which must live as long (a copy of it will do).
KernelAnalysis analyse(const CodeObject& object, const Kernel& kernel, Disassembler& disassembler,
                       const AnalysisOptions& options = {});
KernelAnalysis analyse(const CodeObject& object, const Kernel& kernel, const AnalysisOptions& options = {});

std::string to_text(const KernelAnalysis& analysis);
std::string to_json(const KernelAnalysis& analysis); // one object, indented by 2

} // namespace kiln::isa

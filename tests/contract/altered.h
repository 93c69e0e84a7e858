// A kernel whose device headers are altered in one place, and which of its schedule's promises that breaks.
#pragma once
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include "runtime/build/build_kernel.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kiln::testing {

// `from` stands in the kernel's headers; all of its occurrences become `to`.
struct Alteration {
  std::string title; // a few words, for the table
  std::string from, to;
};
using Alterations = std::map<std::string, Alteration>; // by the name of the promise that each breaks

// A kind of kernel with promises of its own.
struct ContractCase {
  std::string name;
  KernelSpec spec;
  std::string arch;
  std::vector<std::string> settings;
  int few_registers = 12; // with which it compiles and spills
  Alterations own;        // before those of all kernels
};

// The kinds of all families, smallest first.
std::vector<ContractCase> contract_cases();

// What breaks promises that any kernel may make: `place` is a function of the headers that the kernel calls.
Alterations alterations_of_all(const std::string& place, int few_registers);

// The kernel with its headers altered. Throws std::runtime_error if `from` does not occur.
BuiltKernel altered(const Alteration& alteration, const BuiltKernel& kernel, const Target& to);

// The names of the promises that the altered kernel breaks. Throws as `altered`.
std::set<std::string> broken_by(const Alteration& alteration, const BuiltKernel& kernel, const Target& to);

} // namespace kiln::testing

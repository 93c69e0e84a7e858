// A kernel whose device headers are altered in one place, and which of its schedule's promises that breaks.
#pragma once
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include "runtime/build/build_kernel.h"
#include "tests/contract/alterations.h"
#include <set>
#include <string>
#include <vector>

namespace kiln::testing {

// A kind of kernel with promises of its own, on one target.
struct ContractCase {
  std::string name; // without a comma, for the table
  KernelSpec spec;
  std::vector<std::string> settings = {};
  Alterations own = {};          // before those of all kernels
  int few_registers = 12;        // with which it compiles and spills
  std::string place = thread_id; // a function of the headers that the kernel calls
};

// The kinds of all families that the target has; and those of products alone.
std::vector<ContractCase> contract_cases(const Target& to);
std::vector<ContractCase> product_cases(const Target& to);

// The kernel with its headers altered. Throws std::runtime_error if `from` does not occur.
BuiltKernel altered(const Alteration& alteration, const BuiltKernel& kernel, const Target& to);

// The names of the promises that the altered kernel breaks. Throws as `altered`.
std::set<std::string> broken_by(const Alteration& alteration, const BuiltKernel& kernel, const Target& to);

} // namespace kiln::testing

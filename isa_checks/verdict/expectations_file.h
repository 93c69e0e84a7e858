// Expectation files: the contracts of kernels as YAML or JSON text beside them.
#pragma once
#include "isa_checks/verdict/expectations.h"
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa {

// One entry of a file: the kernels that it is about, by glob (*, ?, [a-z]) over name and architecture.
struct KernelExpectations {
  std::string kernel = "*", arch = "*";
  Expectations expectations;
};

// The text is one map of expectations, for every kernel, or `kernels:` with a list of such maps, each with `kernel` and
// `arch` (both optional). The keys are the lines of machine/promises.def; widths are maps of min_bytes, exceptions, excepted and
// at_least; `required` and `forbidden` lists of mnemonics, `no_findings` one of rules, as RULE or RULE:SEVERITY. docs/isa_lint.md has an
// example. Throws Error with file and line for a key that there is not, and for values that do not fit.
std::vector<KernelExpectations> parse_expectations(std::string_view text, const std::string& name);

// Those that are about the kernel, in the file's order.
std::vector<const KernelExpectations*> expectations_for(const std::vector<KernelExpectations>& all, const std::string& kernel,
                                                        const std::string& arch);

bool matches_glob(const std::string& glob, const std::string& text); // as fnmatch(3) without flags

} // namespace kiln::isa

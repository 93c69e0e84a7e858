// run: isa_lint as a function, for its main program, tests and fuzzing.
#pragma once
#include <ostream>
#include <string>
#include <vector>

namespace kiln::isa::cli {

// `arguments` without the program's name. Returns the exit code: 0 clean, 1 findings at or over the threshold (or
// regressions), 2 bad usage or unreadable input. Throws nothing; errors are one line each on `err`.
int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err, bool colour = false);

} // namespace kiln::isa::cli

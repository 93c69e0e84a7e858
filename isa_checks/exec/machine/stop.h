// Stop: what ends a run, thrown by the handler of an instruction.
#pragma once
#include <stdexcept>
#include <string>

namespace kiln::exec {

// What the instruction met. The executor adds the instruction and the wave.
// Not inline: where only functions that are template arguments throw it, clang 21 emits no inline members of it.
struct Stop : std::runtime_error {
  explicit Stop(const char* met);
  explicit Stop(const std::string& met);
  ~Stop() override;
};

} // namespace kiln::exec

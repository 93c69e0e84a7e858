// Control flow, waits and barriers; and the entry for instructions that are not modelled.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include <stdexcept>
#include <string>

namespace kiln::exec {

// Thrown by a handler to end the run: what the instruction met. The executor adds the instruction and the wave.
// Not inline: where only functions that are template arguments throw it, clang 21 emits no inline members of it.
struct Stop : std::runtime_error {
  explicit Stop(const char* met);
  explicit Stop(const std::string& met);
  ~Stop() override;
};

const Semantics& not_modelled_semantics();

} // namespace kiln::exec

// Control flow, waits and barriers; and the entry for instructions that are not modelled.
#pragma once
#include "isa_checks/exec/inst.h"
#include <stdexcept>

namespace kiln::exec {

// Thrown by a handler to end the run: what the instruction met. The executor adds the instruction and the wave.
struct Stop : std::runtime_error {
  using std::runtime_error::runtime_error;
};

const Semantics& not_modelled_semantics();

} // namespace kiln::exec

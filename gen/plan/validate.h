// Validation: whether a spec can be meant, and the iteration space that follows from it.
#pragma once
#include "gen/spec/spec.h"
#include "gen/plan/target.h"

namespace kiln {

// The shape that a kernel for `spec` walks: of every value at its full extent. [rows, cols] for a spec with reductions,
// any rank without. Every value of the spec has this shape, or one that broadcasts to it, or, in a spec with group
// operations, one whose last dimension counts the groups of a row. Throws UserError when there is no such shape.
Shape iteration_space(const KernelSpec& spec);

bool has_reduction(const KernelSpec& spec); // of rows or groups
bool has_group_operation(const KernelSpec& spec);

// Throws UserError when an input or output is of, or a value is cast to, an fp8 type that `target` lacks; names the right
// one.
void require_native_types(const KernelSpec& spec, const Target& target);

// validate(spec) is declared in gen/spec/spec.h.

} // namespace kiln

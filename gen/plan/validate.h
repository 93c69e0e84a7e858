// Validation: whether a spec is well-formed, and the iteration space that follows from it.
#pragma once
#include "gen/plan/target.h"
#include "gen/spec/graph.h"

namespace kiln {

// validate(spec) is declared in gen/spec/spec.h. These are its two halves: the names of a whole spec, and the shapes of a spec
// without products, which gives the iteration space. Both throw UserError.
void require_sound_names(const SpecGraph& graph);
// `one_a_row`: outputs with one number a row are taken without reductions too.
Shape require_sound_shapes(const SpecGraph& graph, bool one_a_row = false);

// Throws UserError when the outputs of a spec of sound names do not belong to one iteration space, or shapes are wrong in it.
void require_one_space(const SpecGraph& graph);

// The shape that a kernel for the spec walks: of every value at its full extent. [rows, cols] for a spec with reductions,
// any rank without; of a spec with products that of its epilogue. Every value of the spec has this shape, or one that
// broadcasts to it, or, in a spec with group operations, one whose last dimension counts the groups of a row. Throws UserError
// when there is no such shape.
Shape iteration_space(const SpecGraph& graph);

// Throws UserError when an input or output is of, or a value is cast to, an fp8 type that `target` lacks; names the right
// one.
void require_native_types(const SpecGraph& graph, const Target& target);

} // namespace kiln

// Pointwise operations of ggml as expressions: one line each. supports_op and the partitioner ask this table.
#pragma once
#include "examples/ggml/kernel_draft.h"
#include <span>

namespace kiln_ggml {

// Builds the value of `node` from those of its sources. Numbers of the node are run-time scalars of the draft.
using BuildPointwise = kiln::Expr (*)(KernelDraft& draft, const ggml_tensor& node, std::span<const kiln::Expr> x);

BuildPointwise find_pointwise(const ggml_tensor& node); // null: not a pointwise operation that is known
bool supports_pointwise(const ggml_tensor& node);
// A source of a GLU is the half of a row: of the one tensor, or the whole of each of two. Other sources are what they are.
std::vector<TensorView> pointwise_sources(const ggml_tensor& node);

float float_parameter(const ggml_tensor& node, int index);

} // namespace kiln_ggml

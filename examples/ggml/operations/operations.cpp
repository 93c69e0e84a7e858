// Operation: the table.
#include "examples/ggml/operations/operations.h"
#include "examples/ggml/operations/pointwise_ops.h"

namespace kiln_ggml {
namespace {

const Operation known_operations[] = {
    {.op = GGML_OP_NORM, .kind = Kind::row, .supports = supports_norm, .build = build_norm},
    {.op = GGML_OP_RMS_NORM, .kind = Kind::row, .supports = supports_norm, .build = build_rms_norm},
    {.op = GGML_OP_L2_NORM, .kind = Kind::row, .supports = supports_norm, .build = build_l2_norm},
    {.op = GGML_OP_SOFT_MAX, .kind = Kind::row, .supports = supports_soft_max, .build = build_soft_max},
    {.op = GGML_OP_ROPE, .kind = Kind::row, .supports = supports_rope, .build = build_rope},
    {.op = GGML_OP_ROPE_BACK, .kind = Kind::row, .supports = supports_rope, .build = build_rope},
    {.op = GGML_OP_SUM_ROWS, .kind = Kind::row, .supports = supports_reduction, .build = build_sum_rows},
    {.op = GGML_OP_MEAN, .kind = Kind::row, .supports = supports_reduction, .build = build_mean},
    {.op = GGML_OP_CUMSUM, .kind = Kind::row, .supports = supports_reduction, .build = build_cumsum},
    {.op = GGML_OP_ARGMAX, .kind = Kind::row, .supports = supports_argmax, .build = build_argmax},
    {.op = GGML_OP_GROUP_NORM, .kind = Kind::alone, .supports = supports_group_norm, .lower = lower_group_norm},
    {.op = GGML_OP_TOP_K, .kind = Kind::alone, .supports = supports_ranks, .lower = lower_ranks},
    {.op = GGML_OP_ARGSORT, .kind = Kind::alone, .supports = supports_ranks, .lower = lower_ranks},
    {.op = GGML_OP_SSM_CONV, .kind = Kind::alone, .supports = supports_ssm_conv, .lower = lower_ssm_conv},
    {.op = GGML_OP_GATED_DELTA_NET, .kind = Kind::alone, .supports = supports_gated_delta, .lower = lower_gated_delta},
    {.op = GGML_OP_SSM_SCAN, .kind = Kind::alone, .supports = supports_ssm_scan, .lower = lower_ssm_scan},
    {.op = GGML_OP_SUM, .kind = Kind::alone, .supports = supports_reduction, .lower = lower_sum},
    {.op = GGML_OP_MUL_MAT, .kind = Kind::product, .supports = supports_product},
    {.op = GGML_OP_MUL_MAT_ID, .kind = Kind::alone, .supports = supports_product_by_id, .lower = lower_product_by_id},
    {.op = GGML_OP_FLASH_ATTN_EXT, .kind = Kind::attention, .supports = supports_attention},
    {.op = GGML_OP_CPY, .kind = Kind::alone, .supports = supports_copy, .lower = lower_copy},
    {.op = GGML_OP_CONT, .kind = Kind::alone, .supports = supports_copy, .lower = lower_copy},
    {.op = GGML_OP_DUP, .kind = Kind::alone, .supports = supports_copy, .lower = lower_copy},
    {.op = GGML_OP_REPEAT, .kind = Kind::alone, .supports = supports_movement, .lower = lower_movement},
    {.op = GGML_OP_PAD, .kind = Kind::alone, .supports = supports_movement, .lower = lower_movement},
    {.op = GGML_OP_PAD_REFLECT_1D, .kind = Kind::alone, .supports = supports_movement, .lower = lower_movement},
    {.op = GGML_OP_ROLL, .kind = Kind::alone, .supports = supports_movement, .lower = lower_movement},
    {.op = GGML_OP_TRI, .kind = Kind::alone, .supports = supports_movement, .lower = lower_movement},
    {.op = GGML_OP_DIAG, .kind = Kind::alone, .supports = supports_movement, .lower = lower_movement},
    {.op = GGML_OP_DIAG_MASK_ZERO, .kind = Kind::alone, .supports = supports_movement, .lower = lower_movement},
    {.op = GGML_OP_IM2COL, .kind = Kind::alone, .supports = supports_im2col, .lower = lower_movement},
    {.op = GGML_OP_IM2COL_3D, .kind = Kind::alone, .supports = supports_im2col, .lower = lower_movement},
    {.op = GGML_OP_DIAG_MASK_INF, .kind = Kind::alone, .supports = supports_movement, .lower = lower_diag_mask},
    {.op = GGML_OP_CONCAT, .kind = Kind::alone, .supports = supports_movement, .lower = lower_concat},
    {.op = GGML_OP_SET, .kind = Kind::alone, .supports = supports_movement, .lower = lower_set},
    {.op = GGML_OP_ACC, .kind = Kind::alone, .supports = supports_movement, .lower = lower_set},
    {.op = GGML_OP_FILL, .kind = Kind::alone, .supports = supports_made, .lower = lower_made},
    {.op = GGML_OP_ARANGE, .kind = Kind::alone, .supports = supports_made, .lower = lower_made},
    {.op = GGML_OP_GET_ROWS, .kind = Kind::alone, .supports = supports_get_rows, .lower = lower_get_rows},
    {.op = GGML_OP_SET_ROWS, .kind = Kind::write, .supports = supports_set_rows, .lower = lower_set_rows},
    {.op = GGML_OP_ADD_ID, .kind = Kind::alone, .supports = supports_add_id, .lower = lower_add_id},
};

constexpr std::int64_t max_elements = 0x7fffffff; // index maps and dimensions are 32 bit

bool is_view(ggml_op op) {
  return op == GGML_OP_NONE || op == GGML_OP_RESHAPE || op == GGML_OP_VIEW || op == GGML_OP_PERMUTE || op == GGML_OP_TRANSPOSE;
}

bool sizes_fit(const ggml_tensor& tensor) {
  return ggml_nelements(&tensor) < max_elements &&
         ggml_nbytes(&tensor) / ggml_type_size(tensor.type) < static_cast<std::size_t>(max_elements);
}

} // namespace

Operation operation_of(const ggml_tensor& node) {
  if (is_view(node.op) || ggml_is_empty(&node)) return {.op = node.op, .kind = Kind::view};
  if (find_pointwise(node) != nullptr) return {.op = node.op, .kind = Kind::pointwise, .supports = supports_pointwise};
  for (const Operation& operation : known_operations)
    if (operation.op == node.op) return operation;
  return {.op = node.op};
}

bool supports(const ggml_tensor& node) {
  const Operation operation = operation_of(node);
  if (operation.kind == Kind::view) return true;
  if (operation.kind == Kind::none || !sizes_fit(node)) return false;
  for (const ggml_tensor* source : node.src)
    if (source != nullptr && !sizes_fit(*source)) return false;
  return operation.supports(node);
}

} // namespace kiln_ggml

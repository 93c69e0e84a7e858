// Registers of matrix operands.
#include "isa_checks/exec/machine/matrix.h"

namespace kiln::exec {

int MatrixLayout::element_bits(Element e) const {
  switch (e) {
  case Element::f64: return 64;
  case Element::f32:
  case Element::xf32: return 32;
  case Element::f16:
  case Element::bf16: return 16;
  default: return 8;
  }
}

int matrix_source_registers(const MatrixLayout& shape, const Fields& fields, int operand) {
  if (shape.named_formats) { // 32 elements per lane. Formats that do not exist count as the widest; executing them stops the run.
    const std::size_t format = operand == 0 ? fields.cbsz : fields.blgp;
    return format < named_formats.size() ? named_formats[format].width() : 8;
  }
  return operand == 0 ? shape.a_registers() : shape.source_registers();
}

} // namespace kiln::exec

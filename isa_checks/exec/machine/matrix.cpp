// Layouts from the names of matrix instructions, and registers of matrix operands.
#include "isa_checks/exec/machine/matrix.h"
#include "isa_checks/target/matrix_shape.h"

namespace kiln::exec {
namespace {

Element element_named(std::string_view name) {
  if (name == "f32") return Element::f32;
  if (name == "xf32") return Element::xf32;
  if (name == "f64") return Element::f64;
  if (name == "f16") return Element::f16;
  if (name == "bf16") return Element::bf16;
  if (name == "bf8") return Element::bf8;
  return name == "i8" || name == "i32" ? Element::i8 : Element::fp8;
}

} // namespace

MatrixLayout layout_of(std::string_view mnemonic) {
  const isa::MatrixShape s = isa::named_matrix_shape(mnemonic).value();
  const auto small = [](int x) { return static_cast<std::uint8_t>(x); };
  return {.m = small(s.m),
          .n = small(s.n),
          .k = small(s.k),
          .blocks = small(s.blocks),
          .a = element_named(s.input),
          .b = element_named(s.second_input),
          .accumulator = element_named(s.result),
          .sparse = s.sparse,
          .named_formats = s.input == "f8f6f4"};
}

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

// Scalar operand values: registers, special registers, constants.
#include "isa_checks/exec/machine/control.h"
#include "isa_checks/exec/machine/wave.h"
#include <fmt/format.h>

namespace kiln::exec {

std::uint32_t read_scalar_code(const Wave& wave, std::uint16_t number) {
  if (number < code::scalar_registers) return wave.s[number];
  if (number <= 192) return number - code::zero;
  if (number <= 208) return 192U - number;
  switch (number) {
  case code::vccz: return wave.pair(code::vcc) == 0 ? 1 : 0;
  case code::execz: return wave.exec() == 0 ? 1 : 0;
  case code::scc: return wave.scc ? 1 : 0;
  default: throw Stop(fmt::format("reads scalar operand {}, which the executor does not model", number));
  }
}

std::uint64_t read_scalar(const Wave& wave, const Operand& operand) {
  if (operand.kind == Operand::constant) return operand.value;
  const std::uint16_t number = operand.reg;
  const bool wide = registers(operand.type) == 2;
  if (number < 127 && wide) return wave.pair(number);
  if (number == 235 || number == 237) { // where the shared and private apertures begin; the upper half is all that is set
    const std::uint64_t base = number == 235 ? shared_aperture : private_aperture;
    return wide ? base : base >> 32;
  }
  return read_scalar_code(wave, number);
}

} // namespace kiln::exec

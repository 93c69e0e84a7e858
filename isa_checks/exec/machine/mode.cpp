// The host's rounding mode while an instruction runs in a MODE other than the ordinary one.
#include "isa_checks/exec/machine/mode.h"
#include <cfenv>

namespace kiln::exec::mode {
namespace {

int host_rounding(Rounding rounding) {
  switch (rounding) {
  case Rounding::up: return FE_UPWARD;
  case Rounding::down: return FE_DOWNWARD;
  case Rounding::toward_zero: return FE_TOWARDZERO;
  default: return FE_TONEAREST;
  }
}

struct HostRounding {
  explicit HostRounding(Rounding rounding) { std::fesetround(host_rounding(rounding)); }
  ~HostRounding() { std::fesetround(FE_TONEAREST); }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;
};

} // namespace

Half to_half(Word m, double exact) {
  const bool saturate = (m & overflow) != 0 && std::isfinite(exact);
  return result(m, Half{static_cast<std::uint16_t>(encode_small(f16_format, exact, wide_rounding(m), saturate))});
}

void run_rounded(Wave& wave, const Inst& inst, Rounds rounds, Handler handler) {
  if (rounds == Rounds::no) return handler(wave, inst);
  const HostRounding scope(rounds == Rounds::as_single ? single_rounding(wave.mode) : wide_rounding(wave.mode));
  handler(wave, inst);
}

} // namespace kiln::exec::mode

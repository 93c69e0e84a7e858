// Definedness through LDS, and the calls of the race detector.
#include "isa_checks/exec/sanitisers/lds_tracking.h"
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/sanitisers/definedness.h"
#include "isa_checks/exec/sanitisers/lds_shadow.h"
#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace kiln::exec {
namespace {

void mark(RegisterShadow& shadow, std::uint16_t reg, int byte, int lane, bool undefined) {
  u64& mask = shadow.vector[reg][static_cast<std::size_t>(byte)];
  mask = undefined ? mask | 1ULL << lane : mask & ~(1ULL << lane);
}

// A read that waits for another wave: the value is polled, or it is one dword or two for all lanes and decides where to go.
bool reads_flag(const Wave& wave, const LaneAccess& op, const WaveAddresses& at) {
  const FlagUse use = wave.flag_uses == nullptr ? FlagUse::none : wave.flag_uses[wave.pc];
  if (use != FlagUse::decides) return use == FlagUse::polls;
  if (op.bytes != 4 && op.bytes != 8) return false;
  const u64 first = at.lane[std::countr_zero(at.mask | 1ULL << 63)];
  bool same = true;
  for_each_lane(at.mask, [&](int i) { same = same && at.lane[i] == first; });
  return same;
}

// Whole dwords: which lanes' bytes were never written, for each byte of the registers.
void define_words(RegisterShadow& shadow, const LdsShadow& lds, const LaneAccess& op, const WaveAddresses& at, std::uint16_t reg) {
  std::array<std::array<u64, 4>, 4> undefined{};
  const auto note = [&](int i, int b, u64 address) {
    if (address < lds.undefined.size() && lds.undefined[address] != 0)
      undefined[static_cast<std::size_t>(b / 4)][static_cast<std::size_t>(b % 4)] |= 1ULL << i;
  };
  for_each_lane(at.mask, [&](int i) {
    for (int b = 0; b < op.bytes; b += 4) {
      std::uint32_t four = ~0U;
      const u64 address = at.lane[i] + static_cast<u64>(b);
      if (address + 4 <= lds.undefined.size()) std::memcpy(&four, &lds.undefined[address], 4);
      if (four == 0) continue;
      for (int k = 0; k < 4; ++k) note(i, b + k, address + static_cast<u64>(k));
    }
  });
  for (std::size_t w = 0; w < op.bytes / 4U; ++w)
    for (std::size_t b = 0; b < 4; ++b) {
      u64& mask = shadow.vector[reg + w][b];
      mask = (mask & ~at.mask) | undefined[w][b];
    }
}

} // namespace

void track_lds_read(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at, std::uint16_t reg) {
  LdsShadow* const lds = wave.group->lds_shadow;
  if (lds == nullptr) return;
  const bool flag = reads_flag(wave, op, at);
  if (flag && at.mask != 0) wave.note_read(at.lane[std::countr_zero(at.mask)]);
  for_each_lane(at.mask, [&](int i) { lds->read(wave, inst, at.lane[i], op.bytes, i, flag); });
  if (wave.shadow == nullptr) return;
  if (op.bytes >= 4) return define_words(*wave.shadow, *lds, op, at, reg);
  const auto undefined = [&](u64 a) { return a < lds->undefined.size() && lds->undefined[a] != 0; };
  // Zero-extended bytes are written whatever the source; sign-extended ones come from the last byte.
  const int first = op.half == 2 ? 2 : 0, width = op.half == 0 ? 4 : 2;
  for_each_lane(at.mask, [&](int i) {
    const u64 address = at.lane[i];
    for (int b = 0; b < width; ++b) {
      const bool inside = b < op.bytes;
      mark(*wave.shadow, reg, first + b, i,
           inside ? undefined(address + static_cast<u64>(b)) : op.sign && undefined(address + op.bytes - 1U));
    }
  });
}

void track_lds_write(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at, std::uint16_t reg) {
  LdsShadow* const lds = wave.group->lds_shadow;
  if (lds == nullptr) return;
  ++wave.effects;
  for_each_lane(at.mask, [&](int i) { lds->write(wave, inst, at.lane[i], op.bytes, i); });
  if (wave.shadow == nullptr) return;
  const int first = op.half == 2 ? 2 : 0;
  for_each_lane(at.mask, [&](int i) {
    for (int b = 0; b < op.bytes; ++b) {
      const auto& bytes = wave.shadow->vector[static_cast<std::size_t>(reg + (first + b) / 4)];
      const bool undefined = active(bytes[static_cast<std::size_t>((first + b) % 4)], i);
      if (const u64 a = at.lane[i] + static_cast<u64>(b); a < lds->undefined.size()) lds->undefined[a] = undefined ? 1 : 0;
    }
  });
}

void track_lds_atomic(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) {
  LdsShadow* const lds = wave.group->lds_shadow;
  if (lds == nullptr) return;
  const bool guards = wave.flag_uses != nullptr && wave.flag_uses[wave.pc] == FlagUse::polls;
  if (!guards) ++wave.effects;
  else if (at.mask != 0) wave.note_read(at.lane[std::countr_zero(at.mask)]);
  for_each_lane(at.mask, [&](int i) {
    lds->atomic(wave, inst, at.lane[i], op.bytes, i, guards);
    bool undefined = false;
    for (u64 a = at.lane[i]; a < at.lane[i] + op.bytes && a < lds->undefined.size(); ++a) {
      undefined = undefined || lds->undefined[a] != 0;
      lds->undefined[a] = 0;
    }
    if (wave.shadow == nullptr) return;
    if (undefined && op.atomic != Atomic::swap)
      report(wave, inst, DefectKind::uninitialised, i,
             [&] { return fmt::format("an atomic on LDS byte {}, which was never written", at.lane[i]); });
    if (op.returns)
      for (int b = 0; b < op.bytes; ++b) mark(*wave.shadow, static_cast<std::uint16_t>(inst.dst.reg + b / 4), b % 4, i, false);
  });
}

void track_lds_fill(Wave& wave, const Inst& inst, u64 address, unsigned bytes, int lane) {
  LdsShadow* const lds = wave.group->lds_shadow;
  if (lds == nullptr) return;
  lds->direct_load(wave, inst, address, bytes, lane);
  for (u64 a = address; a < address + bytes && a < lds->undefined.size(); ++a) lds->undefined[a] = 0;
}

} // namespace kiln::exec

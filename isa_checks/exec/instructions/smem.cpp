// Scalar memory instructions.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/machine/memory.h"
#include "isa_checks/exec/machine/memory_ops.h"
#include "isa_checks/exec/machine/observer.h"
#include "isa_checks/exec/machine/stop.h"
#include "isa_checks/exec/machine/wait_counts.h"
#include "isa_checks/exec/machine/wave.h"
#include <cstring>
#include <fmt/format.h>

namespace kiln::exec {
namespace {

std::uint64_t offset_of(const Wave& wave, const Fields& f) {
  std::uint64_t offset = f.imm ? static_cast<std::uint64_t>(static_cast<std::int64_t>(f.offset)) : 0;
  if (f.soe || !f.imm) offset += read_scalar_code(wave, f.soffset);
  return offset;
}

void read_words(Wave& wave, const Inst& inst, std::uint64_t address, int count) {
  const Fields& f = inst.fields;
  if ((address & 3U) != 0)
    report(wave, inst, DefectKind::misaligned, -1, [&] { return fmt::format("scalar load from {:#x}, no multiple of 4", address); });
  address &= ~3ULL;
  if (wave.observer != nullptr) wave.observer->access_scalar(wave, inst, address, static_cast<std::uint32_t>(count) * 4);
  const Allocation* const a = wave.memory->find(address);
  const auto bytes = static_cast<std::uint64_t>(count) * 4;
  if (a == nullptr || address + bytes > a->end()) {
    report(wave, inst, DefectKind::out_of_bounds, -1,
           [&] { return fmt::format("scalar load of {} bytes at {}", bytes, wave.memory->describe(a == nullptr ? address : a->end())); });
    std::memset(&wave.s[f.dst], 0, bytes);
  } else {
    std::memcpy(&wave.s[f.dst], a->bytes.data() + (address - a->address), bytes);
  }
  if (wave.in_flight != nullptr) wave.in_flight->issue(inst);
}

template <int count> void load(Wave& wave, const Inst& inst) {
  read_words(wave, inst, wave.pair(inst.fields.saddr) + offset_of(wave, inst.fields), count);
}

// Through a buffer descriptor: base in the first 48 bits, then stride, then the number of bytes (stride 0) or records.
template <int count> void buffer_load(Wave& wave, const Inst& inst) {
  const std::uint32_t* const d = &wave.s[inst.fields.saddr];
  const std::uint64_t base = d[0] | static_cast<std::uint64_t>(d[1] & 0xffffU) << 32;
  const std::uint64_t stride = d[1] >> 16 & 0x3fffU, limit = stride == 0 ? d[2] : stride * d[2];
  const std::uint64_t offset = offset_of(wave, inst.fields) & ~3ULL;
  if (offset + static_cast<std::uint64_t>(count) * 4 <= limit) {
    read_words(wave, inst, base + offset, count);
    return;
  }
  for (int i = 0; i < count; ++i) { // out of range reads give 0
    const std::uint64_t at = offset + static_cast<std::uint64_t>(i) * 4;
    std::uint32_t word = 0;
    if (const Allocation* a = wave.memory->find(base + at); at + 4 <= limit && a != nullptr)
      std::memcpy(&word, a->bytes.data() + (base + at - a->address), 4);
    wave.s[inst.fields.dst + i] = word;
  }
  if (wave.in_flight != nullptr) wave.in_flight->issue(inst);
}

void write_words(Wave& wave, const Inst& inst, std::uint64_t address, int count) {
  if ((address & 3U) != 0)
    report(wave, inst, DefectKind::misaligned, -1, [&] { return fmt::format("scalar store to {:#x}, no multiple of 4", address); });
  address &= ~3ULL;
  const auto bytes = static_cast<std::uint64_t>(count) * 4;
  if (wave.observer != nullptr) wave.observer->access_scalar(wave, inst, address, static_cast<std::uint32_t>(bytes));
  Allocation* const a = wave.memory->find(address);
  if (a == nullptr || address + bytes > a->end())
    report(wave, inst, DefectKind::out_of_bounds, -1,
           [&] { return fmt::format("scalar store of {} bytes at {}", bytes, wave.memory->describe(a == nullptr ? address : a->end())); });
  else if (!a->writable)
    report(wave, inst, DefectKind::read_only_store, -1,
           [&] { return fmt::format("scalar store of {} bytes to {}", bytes, wave.memory->describe(address)); });
  else std::memcpy(a->bytes.data() + (address - a->address), &wave.s[inst.fields.dst], bytes);
  if (wave.in_flight != nullptr) wave.in_flight->issue(inst);
}

template <int count> void store(Wave& wave, const Inst& inst) {
  write_words(wave, inst, wave.pair(inst.fields.saddr) + offset_of(wave, inst.fields), count);
}

void read_clock(Wave& wave, const Inst& inst) {
  wave.set_pair(inst.fields.dst, wave.clock);
  if (wave.in_flight != nullptr) wave.in_flight->issue(inst);
}

template <int count> inline constexpr LaneAccess words{.bytes = static_cast<std::uint8_t>(4 * count)};
template <int count> inline constexpr LaneAccess stored_words{.bytes = static_cast<std::uint8_t>(4 * count), .store = true};

constexpr Semantics table[] = {
    line<words<1>>("s_load_dword", load<1>),
    line<words<2>>("s_load_dwordx2", load<2>),
    line<words<4>>("s_load_dwordx4", load<4>),
    line<words<8>>("s_load_dwordx8", load<8>),
    line<words<16>>("s_load_dwordx16", load<16>),
    line<words<1>>("s_buffer_load_dword", buffer_load<1>),
    line<words<2>>("s_buffer_load_dwordx2", buffer_load<2>),
    line<words<4>>("s_buffer_load_dwordx4", buffer_load<4>),
    line<words<8>>("s_buffer_load_dwordx8", buffer_load<8>),
    line<words<16>>("s_buffer_load_dwordx16", buffer_load<16>),
    line<stored_words<1>>("s_store_dword", store<1>),
    line<stored_words<2>>("s_store_dwordx2", store<2>),
    line<stored_words<4>>("s_store_dwordx4", store<4>),
    line<words<2>>("s_memtime", read_clock),
    line<words<2>>("s_memrealtime", read_clock),
};

} // namespace

SemanticsTable scalar_memory_table() { return table; }

} // namespace kiln::exec

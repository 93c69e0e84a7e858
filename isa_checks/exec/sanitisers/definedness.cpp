// Following unwritten values through instructions.
#include "isa_checks/exec/sanitisers/definedness.h"
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/machine/memory_ops.h"
#include "isa_checks/exec/sanitisers/operand_checks.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <span>

namespace kiln::exec {
namespace {

using isa::RegisterRange;

constexpr int fillings = 3;
constexpr std::uint8_t filling[fillings] = {0x00, 0xff, 0x5a};

void report(Wave& wave, const Inst& inst, int lane, std::string message) {
  exec::report(wave, inst, DefectKind::uninitialised, lane, [&] { return std::move(message); });
}

u64 lanes_of(const Wave& wave, const Inst& inst) { return inst.ignores_exec ? all_lanes : wave.exec(); }

bool sources_undefined(const Wave& wave, const Inst& inst) {
  const RegisterShadow& shadow = *wave.shadow;
  const u64 lanes = lanes_of(wave, inst);
  return std::ranges::any_of(inst.use.reads(), [&](RegisterRange r) {
    return r.vector() ? (shadow.undefined_lanes(r) & lanes) != 0 : shadow.scalar_undefined(r);
  });
}

// Calls `f` with each register of one kind, vector registers by number and scalar ones by operand number, SCC behind them.
template <class F> void for_each_vector(std::span<const RegisterRange> list, F f) {
  for (const RegisterRange r : list)
    for (int i = 0; r.vector() && i < r.count; ++i) f(static_cast<std::uint16_t>(r.first + i));
}
template <class F> void for_each_scalar(std::span<const RegisterRange> list, F f) {
  for (const RegisterRange r : list)
    for (int i = 0; !r.vector() && i < r.count; ++i) f(static_cast<std::size_t>(r.first + i - isa::reg::sgpr));
}

// The registers that an instruction touches, to put them back.
struct Snapshot {
  std::vector<Lanes> vector;
  u32 s[Wave::scalar_count];
  bool scc;
  std::uint32_t next;

  template <class F> static void for_each_register(const Inst& inst, F f) {
    for_each_vector(inst.use.reads(), f);
    for_each_vector(inst.use.writes(), f);
  }
  void save(Wave& wave, const Inst& inst) {
    vector.clear();
    for_each_register(inst, [&](std::uint16_t reg) { vector.push_back(*reinterpret_cast<Lanes*>(wave.lanes(reg))); });
    std::memcpy(s, wave.s, sizeof s);
    scc = wave.scc;
    next = wave.next;
  }
  void restore(Wave& wave, const Inst& inst) const {
    std::size_t at = 0;
    for_each_register(inst, [&](std::uint16_t reg) { std::memcpy(wave.lanes(reg), &vector[at++], sizeof(Lanes)); });
    std::memcpy(wave.s, s, sizeof s);
    wave.scc = scc;
    wave.next = next;
  }
};

// Puts `fill` into every unwritten byte of the sources.
void fill_undefined(Wave& wave, const Inst& inst, std::uint8_t fill) {
  const RegisterShadow& shadow = *wave.shadow;
  for_each_vector(inst.use.reads(), [&](std::uint16_t reg) {
    u32* const lanes = wave.lanes(reg);
    for (int b = 0; b < 4; ++b)
      for (u64 m = shadow.vector[reg][static_cast<std::size_t>(b)]; m != 0; m &= m - 1) {
        u32& word = lanes[std::countr_zero(m)];
        word = (word & ~(0xffU << (8 * b))) | static_cast<u32>(fill) << (8 * b);
      }
  });
  const u32 word = fill * 0x01010101U;
  for_each_scalar(inst.use.reads(), [&](std::size_t reg) {
    const u32 undefined = shadow.scalar[reg];
    if (reg != RegisterShadow::scc) wave.s[reg] = (wave.s[reg] & ~undefined) | (word & undefined);
    else if (undefined != 0) wave.scc = (fill & 1U) != 0;
  });
}

struct Outcome {
  std::vector<Lanes> vector;
  u32 s[Wave::scalar_count];
  bool scc;
};

Outcome outcome(Wave& wave, const Inst& inst) {
  Outcome o;
  for_each_vector(inst.use.writes(), [&](std::uint16_t reg) { o.vector.push_back(*reinterpret_cast<Lanes*>(wave.lanes(reg))); });
  std::memcpy(o.s, wave.s, sizeof o.s);
  o.scc = wave.scc;
  return o;
}

// Marks what differs between the runs as unwritten, and what agrees as written.
void compare(Wave& wave, const Inst& inst, const Outcome (&runs)[fillings], u64 written) {
  RegisterShadow& shadow = *wave.shadow;
  std::size_t at = 0;
  for_each_vector(inst.use.writes(), [&](std::uint16_t reg) {
    for (u64 m = written; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      const u32 a = runs[0].vector[at].lane[lane], difference = (a ^ runs[1].vector[at].lane[lane]) | (a ^ runs[2].vector[at].lane[lane]);
      for (int b = 0; b < 4; ++b) {
        u64& mask = shadow.vector[reg][static_cast<std::size_t>(b)];
        mask = (difference >> (8 * b) & 0xffU) != 0 ? mask | 1ULL << lane : mask & ~(1ULL << lane);
      }
    }
    ++at;
  });
  const auto scalar = [&](std::size_t reg) { return (runs[0].s[reg] ^ runs[1].s[reg]) | (runs[0].s[reg] ^ runs[2].s[reg]); };
  for_each_scalar(inst.use.writes(), [&](std::size_t reg) {
    shadow.scalar[reg] = reg != RegisterShadow::scc ? scalar(reg) : runs[0].scc != runs[1].scc ? ~0U : 0;
  });
  if ((scalar(code::exec) | scalar(code::exec + 1)) != 0) {
    report(wave, inst, -1, "EXEC is set from a value that was never written");
    shadow.scalar[code::exec] = shadow.scalar[code::exec + 1] = 0;
  }
}

void run_differential(Wave& wave, const Inst& inst) {
  thread_local Snapshot before; // keeps its memory between instructions
  before.save(wave, inst);
  const u64 written = inst.ignores_exec ? all_lanes : writing_lanes(wave, inst);
  Outcome runs[fillings];
  InstCounters* const counters = wave.counters;
  InFlight* const in_flight = wave.in_flight;
  wave.counters = nullptr;
  wave.in_flight = nullptr;
  for (int k = 0; k < fillings; ++k) {
    fill_undefined(wave, inst, filling[k]);
    inst.handler(wave, inst);
    runs[k] = outcome(wave, inst);
    before.restore(wave, inst);
  }
  wave.counters = counters;
  wave.in_flight = in_flight;
  compare(wave, inst, runs, written);
  inst.handler(wave, inst);
}

void mark_written(Wave& wave, const Inst& inst, u64 lanes) {
  RegisterShadow& shadow = *wave.shadow;
  const int half = inst.op->memory != nullptr ? inst.op->memory->half : 0;
  for_each_vector(inst.use.writes(), [&](std::uint16_t reg) {
    for (std::size_t b = 0; b < 4; ++b)
      if (half == 0 || (b >= 2) == (half == 2)) shadow.vector[reg][b] &= ~lanes;
  });
  for_each_scalar(inst.use.writes(), [&](std::size_t reg) { shadow.scalar[reg] = 0; });
}

// Whether a memory operation has a vector register with addresses, which is its first source then.
bool has_vector_address(const Inst& inst) {
  const Fields& f = inst.fields;
  if (f.format == Format::mubuf) return f.offen || f.idxen;
  if (f.format == Format::flat) return f.segment != 1 || f.offen;
  return f.format == Format::ds && !addressed_by_m0(inst.op->name);
}

// Addresses, and what goes to device memory, must be written.
void check_memory(Wave& wave, const Inst& inst) {
  const RegisterShadow& shadow = *wave.shadow;
  const u64 exec = wave.exec();
  const bool stores_scalars = inst.fields.format == Format::smem && inst.op->memory->store;
  for (const RegisterRange r : inst.use.reads()) {
    if (!r.vector()) {
      if (shadow.scalar_undefined(r))
        report(wave, inst, -1,
               fmt::format("{} comes from {}, which was never written",
                           stores_scalars && r.first == isa::reg::sgpr + inst.fields.dst ? "what is stored" : "the address", name_of(r)));
      continue;
    }
    const bool address = has_vector_address(inst) && r.first == inst.src[0].reg;
    const bool to_lds = inst.fields.format == Format::ds && inst.op->memory->atomic == Atomic::none; // followed through LDS instead
    const bool kept = inst.op->memory != nullptr && inst.op->memory->half != 0 && !inst.op->memory->store && r.first == inst.dst.reg;
    if (kept || (!address && to_lds)) continue;
    u64 undefined = shadow.undefined_lanes(r) & exec;
    if (!address && inst.op->memory != nullptr && inst.op->memory->bytes < 4) { // only the bytes that are stored
      const auto& bytes = shadow.vector[r.first];
      const std::size_t first = inst.op->memory->half == 2 ? 2 : 0;
      undefined = bytes[first];
      if (inst.op->memory->bytes == 2) undefined |= bytes[first + 1];
      undefined &= exec;
    }
    if (undefined != 0)
      report(wave, inst, std::countr_zero(undefined),
             address ? fmt::format("the address comes from {}, which was never written", name_of(r))
                     : fmt::format("stores {}, some byte of which was never written", name_of(r)));
  }
}

} // namespace

void RegisterShadow::reset(int scalars) {
  for (auto& bytes : vector) bytes.fill(all_lanes);
  vector[0].fill(0);
  scalar.fill(~0U);
  std::fill(scalar.begin(), scalar.begin() + scalars, 0U);
  scalar[code::exec] = scalar[code::exec + 1] = 0;
  scalar[code::flat_scratch] = scalar[code::flat_scratch + 1] = 0;
}

std::uint64_t RegisterShadow::undefined_lanes(RegisterRange range) const {
  u64 lanes = 0;
  for (int i = 0; i < range.count; ++i) {
    const auto& b = vector[static_cast<std::size_t>(range.first + i)];
    lanes |= b[0] | b[1] | b[2] | b[3];
  }
  return lanes;
}
bool RegisterShadow::scalar_undefined(RegisterRange range) const {
  const auto first = scalar.begin() + (range.first - isa::reg::sgpr);
  return std::any_of(first, first + range.count, [](u32 bits) { return bits != 0; });
}

void run_tracked(Wave& wave, const Inst& inst) {
  if (inst.cls == InstClass::branch && sources_undefined(wave, inst))
    report(wave, inst, -1, "the branch depends on a value that was never written");
  if (inst.pure) {
    if (sources_undefined(wave, inst)) return run_differential(wave, inst);
    const u64 written = inst.ignores_exec ? all_lanes : writing_lanes(wave, inst);
    inst.handler(wave, inst);
    mark_written(wave, inst, written);
    return;
  }
  const bool memory = inst.op->memory != nullptr || inst.cls == InstClass::smem;
  if (memory) check_memory(wave, inst);
  const bool by_handler = inst.fields.format == Format::ds; // ds_ handlers follow LDS themselves
  if ((memory && !by_handler) || inst.cls == InstClass::branch) mark_written(wave, inst, wave.exec());
  inst.handler(wave, inst);
}

} // namespace kiln::exec

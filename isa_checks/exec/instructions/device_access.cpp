// Loads, stores and atomics of a wave's lanes on the memory sandbox, with bounds, alignment and line counts.
#include "isa_checks/exec/instructions/device_access.h"
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/machine/measurements.h"
#include "isa_checks/exec/machine/memory.h"
#include "isa_checks/exec/machine/observer.h"
#include "isa_checks/exec/machine/wait_counts.h"
#include "isa_checks/exec/numbers/numeric.h"
#include "isa_checks/exec/sanitisers/lds_tracking.h"
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace kiln::exec {
namespace {

// The host address of the bytes of one access; null, and a defect, when they are not all in one allocation.
std::byte* host_bytes(Wave& wave, const Inst& inst, u64 address, unsigned bytes, int lane, bool store) {
  Allocation* const a = wave.memory->find(address);
  if (a == nullptr || address + bytes > a->end()) {
    report(wave, inst, DefectKind::out_of_bounds, lane, [&] {
      return fmt::format("{} of {} bytes at {:#x}, {}", store ? "store" : "load", bytes, address,
                         wave.memory->describe(a == nullptr ? address : a->end()));
    });
    return nullptr;
  }
  if (store && !a->writable) {
    report(wave, inst, DefectKind::read_only_store, lane,
           [&] { return fmt::format("store of {} bytes to {}", bytes, wave.memory->describe(address)); });
    return nullptr;
  }
  return a->bytes.data() + (address - a->address);
}

// The allocation that every lane's access lies in, as host memory by device address; null when there is no single one.
struct Window {
  std::byte* host = nullptr; // of `first`
  u64 first = 0;
  explicit operator bool() const { return host != nullptr; }
  std::byte* operator()(u64 address) const { return host + (address - first); }
};

Window common_window(Wave& wave, const WaveAddresses& at, unsigned bytes, bool store) {
  u64 low = ~0ULL, high = 0;
  for (int i = 0; i < lane_count; ++i)
    if (active(at.mask, i)) {
      low = std::min(low, at.lane[i]);
      high = std::max(high, at.lane[i]);
    }
  Allocation* const a = wave.memory->find(low);
  if (a == nullptr || high + bytes > a->end() || (store && !a->writable)) return {};
  return {a->bytes.data(), a->address};
}

template <int words> void load_words(const Window& window, u32* to, const WaveAddresses& at) {
  for_each_lane(at.mask, [&](int i) {
    u32 value[words];
    std::memcpy(value, window(at.lane[i]), sizeof value);
    for (int w = 0; w < words; ++w) to[w * lane_count + i] = value[w];
  });
}
template <int words> void store_words(const Window& window, const u32* from, const WaveAddresses& at) {
  for_each_lane(at.mask, [&](int i) {
    u32 value[words];
    for (int w = 0; w < words; ++w) value[w] = from[w * lane_count + i];
    std::memcpy(window(at.lane[i]), value, sizeof value);
  });
}

void load_lanes(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) {
  if (at.mask == 0) return;
  u32* const to = wave.lanes(inst.dst.reg);
  const Window window = common_window(wave, at, op.bytes, false);
  if (!window) {
    for_each_lane(at.mask, [&](int i) { load_one(host_bytes(wave, inst, at.lane[i], op.bytes, i, false), to, i, op); });
    return;
  }
  if (wave.only_accesses) return;
  switch (op.bytes) {
  case 4: load_words<1>(window, to, at); break;
  case 8: load_words<2>(window, to, at); break;
  case 12: load_words<3>(window, to, at); break;
  case 16: load_words<4>(window, to, at); break;
  default: for_each_lane(at.mask, [&](int i) { load_one(window(at.lane[i]), to, i, op); });
  }
}

void store_lanes(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) {
  if (at.mask == 0) return;
  ++wave.effects;
  const u32* const from = wave.lanes(inst.src[1].reg);
  const Window window = common_window(wave, at, op.bytes, true);
  if (!window) {
    for_each_lane(at.mask, [&](int i) { store_one(host_bytes(wave, inst, at.lane[i], op.bytes, i, true), from, i, op); });
    return;
  }
  if (wave.only_accesses) return;
  switch (op.bytes) {
  case 4: store_words<1>(window, from, at); break;
  case 8: store_words<2>(window, from, at); break;
  case 12: store_words<3>(window, from, at); break;
  case 16: store_words<4>(window, from, at); break;
  default: for_each_lane(at.mask, [&](int i) { store_one(window(at.lane[i]), from, i, op); });
  }
}

void atomic_lanes(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) {
  const u32* const data = wave.lanes(inst.src[1].reg);
  u32* const to = inst.fields.sc0 ? wave.lanes(inst.dst.reg) : nullptr; // sc0: return the old value
  bool changed = false;
  for_each_lane(at.mask, [&](int i) {
    u64 old = 0;
    const bool aligned = at.lane[i] % op.bytes == 0;
    if (!aligned)
      report(wave, inst, DefectKind::misaligned, i, [&] { return fmt::format("atomic of {} bytes at {:#x}", op.bytes, at.lane[i]); });
    std::byte* const host = aligned ? host_bytes(wave, inst, at.lane[i], op.bytes, i, true) : nullptr;
    const u64 first = lane_word(data, i, op.bytes);
    const u64 second = op.atomic == Atomic::cmpswap ? lane_word(data + op.bytes / 4 * lane_count, i, op.bytes) : 0;
    const auto update = [&]<class T>(T* p) {
      std::atomic_ref<T> cell(*p);
      T expected = cell.load(), now = 0;
      do now = static_cast<T>(apply_atomic(op.atomic, op.bytes, expected, first, second));
      while (!cell.compare_exchange_weak(expected, now));
      old = expected;
      changed = changed || now != expected;
    };
    if (host != nullptr && op.bytes == 4) update(reinterpret_cast<u32*>(host));
    if (host != nullptr && op.bytes == 8) update(reinterpret_cast<u64*>(host));
    if (to != nullptr) set_lane_word(to, i, op.bytes, old);
  });
  if (changed) ++wave.effects;
}

// The LDS address is M0's base, the instruction offset (already in `at` for memory), and 4 or more bytes per lane in order.
void load_to_lds(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) {
  const u64 base =
      (wave.s[code::m0] & ((1U << wave.target->lds_dma_base_bits) - 1)) + static_cast<u64>(static_cast<std::int64_t>(inst.fields.offset));
  for_each_lane(at.mask, [&](int i) {
    const std::byte* const from = host_bytes(wave, inst, at.lane[i], op.bytes, i, false);
    const unsigned step = std::max<unsigned>(op.bytes, 4);
    const u64 to = base + static_cast<u64>(i) * step;
    if (to >= wave.group->lds.size() || to + step > wave.group->lds.size()) { // a negative offset wraps around
      report(wave, inst, DefectKind::out_of_bounds, i,
             [&] { return fmt::format("direct-to-LDS load to LDS byte {} of {}", to, wave.group->lds.size()); });
      return;
    }
    u32 value[4] = {};
    if (from != nullptr) std::memcpy(value, from, op.bytes);
    value[0] = extended(value[0], op);
    track_lds_fill(wave, inst, to, step, i);
    std::memcpy(wave.group->lds.data() + to, value, step);
  });
}

void count_lines(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) {
  if (wave.observer != nullptr) wave.observer->access(wave, inst, op, at);
  if (wave.counters == nullptr) return;
  InstCounters& c = wave.counters[wave.pc];
  c.bytes += static_cast<u64>(std::popcount(at.mask)) * op.bytes;
  std::array<u64, 2 * lane_count> lines;
  std::size_t n = 0;
  for_each_lane(at.mask, [&](int i) {
    const u64 first = at.lane[i] / 64, last = (at.lane[i] + op.bytes - 1) / 64;
    if (n == 0 || lines[n - 1] != first) lines[n++] = first;
    if (last != first) lines[n++] = last;
  });
  const auto end = lines.begin() + static_cast<std::ptrdiff_t>(n);
  if (!std::is_sorted(lines.begin(), end)) std::sort(lines.begin(), end);
  for (std::size_t i = 0; i < n; ++i) {
    if (i == 0 || lines[i] != lines[i - 1]) ++c.lines64;
    if (i == 0 || lines[i] / 2 != lines[i - 1] / 2) ++c.lines128;
  }
}

} // namespace

void device_access(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) {
  count_lines(wave, inst, op, at);
  if (op.to_lds) load_to_lds(wave, inst, op, at);
  else if (op.atomic != Atomic::none) atomic_lanes(wave, inst, op, at);
  else if (op.store) store_lanes(wave, inst, op, at);
  else load_lanes(wave, inst, op, at);
}

void note_in_flight(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) {
  const Fields& f = inst.fields;
  const bool shared = op.atomic != Atomic::none || ((f.sc0 || f.sc1) && !op.store); // what another workgroup may change meanwhile
  if (shared && at.mask != 0) wave.note_read(at.lane[std::countr_zero(at.mask)]);
  if (wave.in_flight == nullptr) return;
  const bool loads = op.atomic == Atomic::none && !op.store;
  wave.in_flight->issue(inst, {.loaded_bytes = loads ? static_cast<u32>(std::popcount(at.mask)) * op.bytes : 0, .to_lds = op.to_lds});
}

} // namespace kiln::exec

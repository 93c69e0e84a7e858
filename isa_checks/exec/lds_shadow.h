// LdsShadow: for every LDS byte, whether it was written, and by which waves it was last accessed: what finds races.
#pragma once
#include "isa_checks/exec/wave.h"
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace kiln::exec {

inline constexpr int max_waves = 16; // of a workgroup
using Clock = std::array<std::uint32_t, max_waves>;

// Happens-before is kept with vector clocks. A barrier orders everything before it with everything after it; an atomic on a
// dword orders its wave after all earlier atomics on that dword.
class LdsShadow {
public:
  void reset(std::size_t bytes, int waves, bool find_races);
  void barrier(); // every wave has arrived

  // One lane's access of `bytes` LDS bytes at `address`. Reports a race with another wave's access.
  void read(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane);
  void write(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane);
  void atomic(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane);

  std::vector<std::uint8_t> undefined; // 1: never written

private:
  struct Access {
    std::uint32_t time = 0; // 0: none
    std::uint8_t wave = 0;
    bool atomic = false;
  };
  struct Cell {
    Access write, readers[2]; // the two latest readers of different waves
  };
  bool ordered(const Access& access, int wave) const {
    return access.time == 0 || access.wave == wave || access.time <= clocks_[static_cast<std::size_t>(wave)][access.wave];
  }
  void report(Wave& wave, const Inst& inst, const char* what, const Access& other, const char* other_what, std::uint64_t address, int lane);
  void read_cell(Wave& wave, const Inst& inst, std::uint64_t address, int lane, bool atomic);
  void write_cell(Wave& wave, const Inst& inst, std::uint64_t address, int lane, bool atomic);

  std::vector<Cell> cells_;
  std::array<Clock, max_waves> clocks_{};
  std::unordered_map<std::uint64_t, Clock> released_; // by dword that atomics use
  int waves_ = 0;
  bool find_races_ = true;
};

} // namespace kiln::exec

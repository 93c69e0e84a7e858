// execute: runs a kernel of a code object on the CPU, lane for lane, on a sandbox of device memory.
#pragma once
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/machine/measurements.h"
#include "isa_checks/exec/machine/memory.h"
#include "isa_checks/object/code_object.h"
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::exec {

class Observer;

struct Grid {
  std::array<std::uint32_t, 3> workgroups{1, 1, 1};
  std::array<std::uint32_t, 3> workgroup_size{64, 1, 1}; // work items
  std::uint32_t dynamic_lds = 0;                         // bytes beyond the kernel's static LDS
  std::array<std::uint32_t, 3> first{0, 0, 0};           // id of the first workgroup, to run a part of a larger grid
  // To run some workgroups of the grid only, in this order: their numbers, x fastest. Empty: all of them.
  std::span<const std::uint32_t> only{};
};

struct ExecOptions {
  std::uint64_t seed = 1;                       // of the interleaving of waves and of what unwritten registers hold
  int threads = 1;                              // workgroups run on this many host threads; 0: all cores
  std::uint64_t max_instructions = 200'000'000; // of one wave, before the run is stopped as endless
  bool check_waits = true;                      // registers read or overwritten before their load is waited for
  bool check_undefined = true;                  // values never written that decide an address, a branch or what is stored
  bool check_races = true;                      // LDS bytes that two waves access with nothing that orders them
  bool check_hazards = true;                    // wait states that software has to leave between instructions
  bool measure = true;                          // count per instruction; class counts are always there
  Observer* observer = nullptr;                 // with one thread: is told every instruction and access
  // By instruction, 1: its results are not wanted. Registers and memory stay as they are; `observer` is told what it accesses. Empty: all
  // are.
  std::span<const std::uint8_t> unwanted{};
  bool preload = true;   // false: begin where firmware begins that cannot preload arguments
  bool in_turns = false; // workgroups that the device holds at once, and their waves, advance side by side, not one after the other
};

// Instructions by class: the sum over the waves of a run, and the waves that executed least and most.
struct WaveTotals {
  std::uint64_t waves = 0;
  ClassCounts total{}, least{}, most{};
  std::uint64_t executed(InstClass cls) const { return total[static_cast<std::size_t>(cls)]; }
  std::uint64_t executed() const;
  double mean() const { return waves == 0 ? 0 : static_cast<double>(executed()) / static_cast<double>(waves); } // of a wave
  void add_wave(const ClassCounts& counts);
  void add(const WaveTotals& other);
};

std::uint64_t sum(const ClassCounts& counts);

// What one instruction of the program did, by rising address.
struct InstructionProfile {
  std::uint64_t address = 0;
  std::string text;
  InstClass cls{};
  InstCounters counters;
};

struct ExecResult {
  bool completed = false;      // every wave reached its end
  std::vector<Defect> defects; // out-of-bounds and stop reasons always; the others as options say
  WaveTotals waves;
  std::vector<InstructionProfile> instructions; // empty unless options.measure
};

// `arguments` are the kernel's explicit arguments, laid out as its metadata says; hidden ones are filled in. Throws isa::Error
// for a kernel that is not there, or arguments or a grid that do not fit it; what the kernel does wrong is a defect.
ExecResult execute(const isa::CodeObject& object, std::string_view kernel, const Grid& grid, std::span<const std::byte> arguments,
                   Memory& memory, const ExecOptions& options = {});

// Several launches beside each other on a few CUs of a device, their workgroups begun and advanced in a random order.
struct LaunchBeside {
  const isa::CodeObject& object;
  std::string_view kernel;
  Grid grid;
  std::span<const std::byte> arguments; // as execute takes them
};

// Workgroups of a launch begin in their order, those of several launches in any order, as soon as a CU has room: a workgroup takes
// 1 / occupancy of one. Whichever has begun goes on at any time; options.seed decides. The result is of all launches together, without
// profiles of instructions; a deadlock is that all which are begun wait, and none that is left has room. One host thread;
// options.threads, in_turns and measure mean nothing here. Throws as execute does.
ExecResult execute_beside(std::span<const LaunchBeside> launches, int cus, Memory& memory, const ExecOptions& options = {});

} // namespace kiln::exec

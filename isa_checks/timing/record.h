// Record: what the executor saw of a launch, as the simulation needs it: for each wave its instructions in order, with the
// lines of memory that they touch, and the waves that they wait for.
#pragma once
#include "isa_checks/error.h"
#include "isa_checks/exec/run/execute.h"
#include "isa_checks/object/code_object.h"
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln::timing {

// What the simulation does with an instruction.
enum class Action : std::uint8_t {
  valu,
  trans,
  matrix,
  salu,
  scalar_load,
  load,
  store,
  atomic,
  lds,
  release,
  acquire,
  wait,
  barrier,
  nop,
  branch,
  end,
  other
};

// One instruction of the kernel.
struct Code {
  std::uint64_t address = 0;
  Action action = Action::other;
  bool to_lds = false;                                   // a direct-to-LDS load
  bool returns = false;                                  // an atomic that gives the old value back
  bool polls = false;                                    // a read that was seen to wait for another wave
  bool for_device = false;                               // a load or store past the caches that other XCDs do not see
  bool streamed = false;                                 // a store of what nobody is expected to read soon (nt)
  std::uint8_t vmcnt = max_vmcnt, lgkmcnt = max_lgkmcnt; // of waits: how many operations may stay outstanding
  float cycles = 4;                                      // that its pipe is busy
  std::string text;
};

inline constexpr std::uint32_t none = 0xffffffff;
inline constexpr std::uint64_t max_recorded_steps = 20'000'000; // of one execution: 0.8 GB with what they access

// A step of another workgroup that wrote what an access reads.
struct Awaited {
  std::uint32_t workgroup = 0, wave = 0, step = 0;
  bool operator==(const Awaited&) const = default;
};

struct Access {
  std::uint32_t first = 0;  // into Workgroup::lines
  std::uint16_t lines = 0;  // of 128 bytes
  std::uint16_t halves = 0; // of 64 bytes
  std::uint32_t passes = 0; // of LDS: bank passes
  std::uint32_t bytes = 0;
  // The latest write of this place by another wave of the workgroup, when the access reads one place only; none: there is none.
  std::uint32_t writer = none, written_at = none; // wave, and index into its steps
  std::uint32_t first_awaited = 0, awaited = 0;   // into Workgroup::awaited
};

struct Step {
  std::uint32_t code = 0;      // into Record::code
  std::uint32_t access = none; // into Workgroup::accesses
  bool dependent = false;      // reads a result of the vector instruction right before it
  bool taken = false;          // a branch that went elsewhere
};

// Lines of a buffer that a workgroup touches, from its first to its last; 0, 0: none.
struct LineSpan {
  std::uint64_t first = 0, count = 0;
};

struct Workgroup {
  std::uint32_t number = 0; // in the grid, x fastest
  std::vector<std::vector<Step>> waves;
  std::vector<Access> accesses;
  std::vector<std::uint64_t> lines; // address / 128
  std::vector<Awaited> awaited;
  std::vector<LineSpan> spans; // in each of Record::buffers; empty: they lie side by side
  std::uint64_t signature = 0; // equal for workgroups that do the same on other addresses
  std::size_t steps() const;
};

// Which workgroups touch the same lines, where several but not all do: `together` of them, `apart` from each other in the grid, are a
// group.
struct Sharers {
  std::uint32_t apart = 1, together = 0; // none together: not known
  std::uint32_t group_of(std::uint32_t workgroup) const { return workgroup % apart + apart * (workgroup / (apart * together)); }
};

// A buffer that the launch touches: lines of 128 bytes that are read or written, and how often workgroups request them.
struct Buffer {
  std::string name;
  std::uint64_t first_line = 0, end_line = 0;
  double touched = 0, requested = 0; // lines: distinct over the launch, and summed over workgroups (each line once a workgroup)
  double updated = 0;                // distinct lines that are read and written: they move twice
  Sharers sharers = {};
  double sharing() const { return touched > 0 && requested > touched ? requested / touched : 1; } // workgroups that touch a line
};

struct Record {
  std::string kernel;
  std::vector<Code> code;
  std::vector<Workgroup> recorded; // by number
  std::uint32_t workgroups = 0;    // of the launch
  std::uint32_t xcds = 1;          // that workgroups are spread over, where only those of the first one were recorded
  int waves = 0;                   // of a workgroup
  int workgroups_per_cu = 0;       // that a CU holds at once
  std::vector<Buffer> buffers;     // by address
  double footprint = 0;            // bytes: distinct lines touched
  double moved = 0;                // bytes: the footprint, and once more the lines that are read and written
  double flops = 0;                // of matrix instructions
  // Like which recorded workgroup a workgroup of the launch behaves: itself when it was recorded, else the nearest one before it.
  const Workgroup& representative_of(std::uint32_t number) const;
};

// A launch too long to record: its workgroups exchange data, so that none can be left out, or a single one is too long.
struct TooLong : isa::Error {
  using Error::Error;
};

struct RecordOptions {
  std::uint64_t max_steps = max_recorded_steps; // wave instructions of one execution
  // Above 1: where all workgroups would be executed, those of the first of so many XCDs are; of workgroups that may wait for each other a
  // few of the second besides, if what they publish is read by them. Not for kernels that give up to wait after some time, as clusters of
  // rows do.
  std::uint32_t xcds = 1;
};

// Executes the kernel and records it: every workgroup of a small launch, some of a large one. The buffers that the arguments point at lie
// in `memory`. Throws TooLong when an execution takes more than `max_steps` wave instructions, isa::Error when the launch does not fit the
// kernel or does not end well.
Record record(const isa::CodeObject& object, std::string_view kernel, const exec::Grid& grid, std::span<const std::byte> arguments,
              exec::Memory& memory, const RecordOptions& options = {});

} // namespace kiln::timing

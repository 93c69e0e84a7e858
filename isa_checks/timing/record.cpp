// Choosing the workgroups to execute, and what their records say of the whole launch.
#include "isa_checks/timing/record.h"
#include "isa_checks/analysis/control_slice.h"
#include "isa_checks/analysis/issue.h"
#include "isa_checks/analysis/occupancy.h"
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/error.h"
#include "isa_checks/timing/recorder.h"
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <ranges>
#include <set>

namespace kiln::timing {
namespace {

using std::uint32_t;
using std::uint64_t;

constexpr uint64_t affordable_steps = 3'000'000; // of one record: about a second of the executor
constexpr uint64_t cheap_steps = 100'000;        // so few that looking for workgroups that are alike does not pay
constexpr uint32_t sampled_workgroups = 24;      // that say whether all are alike
constexpr uint32_t max_that_wait = 4096;         // workgroups that run together, as they may wait for each other
constexpr uint64_t max_in_turns = 3072;          // waves of such workgroups that advance side by side; each takes 140 KiB of the host

Action action_of(const isa::Instruction& i) {
  const std::string_view m = i.mnemonic;
  if (m.starts_with("s_endpgm")) return Action::end;
  if (m == "buffer_wbl2") return Action::release;
  if (m == "buffer_inv") return Action::acquire;
  static constexpr Action actions[] = {
#define KILN_INSTRUCTION_CLASS(name, counted, action) Action::action,
#include "isa_checks/decode/instruction_classes.def"
  };
  return actions[static_cast<std::size_t>(i.kind)];
}

Code code_of(const isa::Instruction& i, const isa::TargetFacts& target) {
  Code c;
  c.address = i.address;
  c.action = action_of(i);
  c.text = i.text;
  if (c.action == Action::nop) {
    int states = 0;
    const std::string_view text = i.operands();
    std::from_chars(text.data(), text.data() + text.size(), states);
    c.cycles = static_cast<float>(i.mnemonic == "s_sleep" ? 64 * states : 4 * (states + 1));
  } else if (c.action == Action::valu || c.action == Action::trans || c.action == Action::matrix) {
    c.cycles = static_cast<float>(isa::instruction_cost(i, nullptr, target).clocks);
  }
  if (const auto op = i.memory) c.to_lds = op->to_lds;
  c.for_device = (c.action == Action::load || c.action == Action::store) && i.text.find(" sc1") != std::string::npos;
  c.streamed = c.action == Action::store && i.text.find(" nt") != std::string::npos;
  c.returns = c.action == Action::atomic && i.text.find(" sc0") != std::string::npos;
  if (const auto w = isa::wait_counts(i)) {
    c.vmcnt = static_cast<std::uint8_t>(w->vmcnt.value_or(max_vmcnt));
    c.lgkmcnt = static_cast<std::uint8_t>(w->lgkmcnt.value_or(max_lgkmcnt));
  }
  return c;
}

// The first workgroups, which start together, some spread over the grid, and the last one.
std::vector<uint32_t> sample(uint32_t workgroups, uint32_t count) {
  std::vector<uint32_t> chosen;
  count = std::min(count, workgroups);
  for (uint32_t i = 0; i < count; ++i)
    chosen.push_back(i < count / 2 ? i : static_cast<uint32_t>(uint64_t{i} * (workgroups - 1) / std::max(count - 1, 1U)));
  chosen.erase(std::ranges::unique(chosen).begin(), chosen.end());
  return chosen;
}

// Workgroups that ask which of them came last, or write for others to read, are not like each other.
bool communicates(const std::vector<Code>& code) {
  return std::ranges::any_of(code, [](const Code& c) { return (c.action == Action::atomic && c.returns) || c.action == Action::release; });
}

bool may_wait_for_others(const std::vector<Code>& code) {
  return std::ranges::any_of(code, [](const Code& c) { return c.for_device && c.action == Action::load; });
}

// One of so many, from the first.
std::vector<uint32_t> one_of(uint32_t xcds, uint32_t workgroups) {
  std::vector<uint32_t> numbers;
  for (uint32_t n = 0; n < workgroups; n += xcds) numbers.push_back(n);
  return numbers;
}

// Those of the first XCD, and the first few of the second, which may share a tile with the last of the first.
std::vector<uint32_t> first_xcd(uint32_t xcds, uint32_t workgroups) {
  constexpr uint32_t few = 4;
  std::vector<uint32_t> numbers = one_of(xcds, workgroups);
  for (uint32_t n = 1; n < std::min(few * xcds, workgroups); n += xcds) numbers.push_back(n);
  std::ranges::sort(numbers);
  return numbers;
}

// Whether all that workgroups of the first XCD publish was read by one that was executed, and one of them reads: else what collects it is
// missing, or is another XCD's.
bool all_is_read(const Record& r, uint32_t xcds) {
  std::set<std::array<uint32_t, 3>> read;
  bool one_collects = false;
  for (const Workgroup& w : r.recorded) {
    for (const Awaited& a : w.awaited) read.insert({a.workgroup, a.wave, a.step});
    one_collects = one_collects || (w.number % xcds == 0 && !w.awaited.empty());
  }
  for (const Workgroup& w : r.recorded | std::views::filter([&](const Workgroup& g) { return g.number % xcds == 0; }))
    for (uint32_t wave = 0; wave < w.waves.size(); ++wave)
      for (uint32_t step = 0; step < w.waves[wave].size(); ++step) {
        const Step& s = w.waves[wave][step];
        const Code& code = r.code[s.code];
        const bool publishes = code.for_device && code.action == Action::store && s.access != none && w.accesses[s.access].lines != 0;
        if (publishes && !read.contains({w.number, wave, step})) return false;
      }
  return one_collects;
}

// What executions may leave out, as they are recorded for the places that are accessed and not for what is computed.
struct Slice {
  Slice(const isa::Program& program, bool stores) : stores_decide(stores), unwanted(isa::unwanted_results(program, stores)) {}
  bool stores_decide;
  std::vector<std::uint8_t> unwanted;
};

std::vector<Workgroup> run(const isa::CodeObject& object, std::string_view kernel, exec::Grid grid, std::span<const std::byte> arguments,
                           exec::Memory& memory, std::span<const uint32_t> only, int waves, uint64_t max_steps, const Slice& slice,
                           std::vector<Code>& code) {
  Recorder recorder(kernel, waves, grid, max_steps, slice.unwanted, slice.stores_decide);
  grid.only = only;
  exec::ExecOptions options;
  options.check_waits = options.check_undefined = options.check_races = options.check_hazards = options.measure = false;
  options.observer = &recorder;
  options.unwanted = slice.unwanted;
  options.in_turns = may_wait_for_others(code) && only.size() * static_cast<uint64_t>(waves) <= max_in_turns;
  const exec::ExecResult result = exec::execute(object, kernel, grid, arguments, memory, options);
  if (!result.completed || !result.defects.empty())
    throw isa::Error(fmt::format("kernel {}", kernel),
                     "its execution does not end well: " + (result.defects.empty() ? "" : exec::to_text(result.defects.front())),
                     "run it with `kiln run` and mend what that finds");
  for (const uint32_t pc : recorder.polled()) code[pc].polls = true;
  return recorder.take();
}

// Brings back what a run may have left behind that changes the next one: counters and flags, which lie in small buffers.
class Restore {
public:
  explicit Restore(exec::Memory& memory) : memory_(memory) {
    for (const exec::Allocation& a : memory.allocations())
      if (a.writable && a.bytes.size() <= largest) saved_.emplace_back(a.address, std::vector(a.bytes.begin(), a.bytes.end()));
  }
  void operator()() const {
    for (const auto& [address, bytes] : saved_) std::ranges::copy(bytes, memory_.bytes(address).begin());
  }

private:
  static constexpr std::size_t largest = 32U << 20;
  exec::Memory& memory_;
  std::vector<std::pair<uint64_t, std::vector<std::byte>>> saved_;
};

struct LineUse {
  bool read = false, written = false;
  uint32_t latest = none; // of the recorded workgroups: the last one that requested it
};

// Lines that workgroups request, by buffer; what was not recorded is taken to be like what was.
std::vector<Buffer> count_buffers(const Record& r, const exec::Memory& memory) {
  std::vector<Buffer> buffers;
  for (const exec::Allocation& a : memory.allocations())
    if (!a.bytes.empty())
      buffers.push_back({.name = a.name, .first_line = a.address / line_bytes, .end_line = (a.end() + line_bytes - 1) / line_bytes});
  std::vector<std::vector<LineUse>> uses(buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) uses[b].resize(buffers[b].end_line - buffers[b].first_line);
  std::size_t b = 0; // the buffer of the line before is often that of the next
  const auto mark = [&](uint64_t line, uint32_t workgroup, Action action) {
    if (line < buffers[b].first_line || line >= buffers[b].end_line) {
      const auto after = std::ranges::upper_bound(buffers, line, {}, &Buffer::first_line);
      if (after == buffers.begin() || line >= std::prev(after)->end_line) return;
      b = static_cast<std::size_t>(std::prev(after) - buffers.begin());
    }
    LineUse& use = uses[b][line - buffers[b].first_line];
    if (use.latest != workgroup) buffers[b].requested += 1;
    use.latest = workgroup;
    use.read = use.read || action != Action::store;
    use.written = use.written || action == Action::store || action == Action::atomic;
  };
  for (uint32_t i = 0; i < r.recorded.size(); ++i) {
    const Workgroup& w = r.recorded[i];
    for (const auto& steps : w.waves)
      for (const Step& s : steps) {
        const Action action = r.code[s.code].action;
        if (s.access == none || action == Action::lds) continue;
        const Access& a = w.accesses[s.access];
        for (uint32_t k = 0; k < a.lines; ++k) mark(w.lines[a.first + k], i, action);
      }
  }
  const double scale = static_cast<double>(r.workgroups) / static_cast<double>(r.recorded.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    Buffer& b = buffers[i];
    b.requested *= scale;
    const auto lines = [&](auto is_one) {
      return std::min(
          {static_cast<double>(std::ranges::count_if(uses[i], is_one)) * scale, b.requested, static_cast<double>(uses[i].size())});
    };
    b.touched = lines([](const LineUse& use) { return use.read || use.written; });
    b.updated = lines([](const LineUse& use) { return use.read && use.written; });
  }
  std::erase_if(buffers, [](const Buffer& b) { return b.requested == 0; });
  return buffers;
}

void measure_spans(Workgroup& w, const std::vector<Buffer>& buffers) {
  for (const Buffer& b : buffers) {
    uint64_t first = b.end_line, end = b.first_line;
    for (const uint64_t line : w.lines)
      if (line >= b.first_line && line < b.end_line) first = std::min(first, line), end = std::max(end, line + 1);
    w.spans.push_back(end > first ? LineSpan{first, end - first} : LineSpan{});
  }
}

// Whether the recorded workgroups begin at the same line where they are of one group, and at others where they are not.
bool agree(const Sharers& sharers, const std::vector<Workgroup>& recorded, std::size_t buffer) {
  std::map<uint32_t, uint64_t> begins; // by group
  std::set<uint64_t> places;
  for (const Workgroup& w : recorded) {
    const auto [found, fresh] = begins.emplace(sharers.group_of(w.number), w.spans[buffer].first);
    if (found->second != w.spans[buffer].first) return false;
    places.insert(found->second);
  }
  return places.size() == begins.size();
}

// Several rows of tiles: tiles of a column follow each other, in all or on their XCD, or lie a row apart.
Sharers sharers_of(const Record& r, std::size_t buffer) {
  constexpr std::size_t enough = 4; // recorded workgroups that tell
  constexpr double whole = 0.02;    // how far from a whole number what was counted may be, of it: ends of rows may lie in one line
  const double sharing = r.buffers[buffer].sharing();
  const auto together = static_cast<uint32_t>(std::lround(sharing));
  if (r.recorded.size() < enough || together < 2 || together >= r.workgroups || std::abs(sharing - together) > whole * together) return {};
  const auto place = [&](const Workgroup& w) { return w.spans[buffer].first; };
  const auto next = std::ranges::find(std::next(r.recorded.begin()), r.recorded.end(), place(r.recorded.front()), place);
  const uint32_t row = r.workgroups / together;
  const Sharers sharers{.apart = next == r.recorded.end() ? row : std::min(row, next->number), .together = together};
  return r.workgroups % (sharers.apart * together) == 0 && agree(sharers, r.recorded, buffer) ? sharers : Sharers{};
}

// Whether all begin at one place of the lines that they share. Else they take those in orders of their own.
bool begin_alike(const Record& r) {
  for (const Buffer& b : r.buffers) {
    if (b.sharing() < 1.5) continue;
    const auto begins = [&](const Workgroup& w) -> uint64_t {
      uint64_t first = 0, least = b.end_line;
      for (const uint64_t line : w.lines | std::views::filter([&](uint64_t l) { return l >= b.first_line && l < b.end_line; })) {
        if (least == b.end_line) first = line;
        least = std::min(least, line);
      }
      return least == b.end_line ? 0 : first - least;
    };
    const uint64_t first = begins(r.recorded.front());
    if (std::ranges::any_of(r.recorded, [&](const Workgroup& w) { return begins(w) != first; })) return false;
  }
  return true;
}

double matrix_flops(const Record& r, const std::vector<isa::Instruction>& instructions, const isa::TargetFacts& target) {
  std::vector<double> of(r.code.size(), 0);
  for (std::size_t i = 0; i < instructions.size(); ++i)
    if (const auto shape = isa::matrix_shape(instructions[i], isa::operands_of(instructions[i]), target))
      of[i] = static_cast<double>(shape->operations());
  double sum = 0;
  for (const Workgroup& w : r.recorded)
    for (const auto& steps : w.waves)
      for (const Step& s : steps) sum += of[s.code];
  return sum * r.workgroups / static_cast<double>(r.recorded.size());
}

// What is known before anything is executed.
Record of_launch(const isa::Kernel& kernel, const isa::TargetFacts& target, const std::vector<isa::Instruction>& instructions,
                 const exec::Grid& grid) {
  Record r;
  r.kernel = kernel.name;
  for (const isa::Instruction& i : instructions) r.code.push_back(code_of(i, target));
  const uint32_t items = grid.workgroup_size[0] * grid.workgroup_size[1] * grid.workgroup_size[2];
  r.workgroups = grid.workgroups[0] * grid.workgroups[1] * grid.workgroups[2];
  if (r.workgroups == 0) throw isa::Error(fmt::format("kernel {}", r.kernel), "a launch of no workgroups", "give sizes of 1 or more");
  r.waves = static_cast<int>((items + wave_size - 1) / wave_size);
  const auto lds = static_cast<int>(kernel.descriptor.group_segment_bytes + grid.dynamic_lds);
  r.workgroups_per_cu =
      isa::occupancy(
          target,
          {.vgprs = static_cast<int>(kernel.descriptor.vgprs), .sgprs = 0, .lds_bytes = lds, .workgroup_size = static_cast<int>(items)})
          .workgroups_per_cu;
  if (r.workgroups_per_cu == 0)
    throw isa::Error(fmt::format("kernel {}", r.kernel),
                     fmt::format("no CU has room for a workgroup of {} work items and {} bytes of LDS", items, lds),
                     "launch fewer work items or less LDS");
  return r;
}

// Workgroups that wait for each other: those of one XCD if they are enough, else all.
template <class RunOnly> void run_together(Record& r, uint32_t xcds, const RunOnly& run_only) {
  if (xcds > 1) {
    try {
      run_only(first_xcd(xcds, r.workgroups));
      if (all_is_read(r, xcds)) {
        r.xcds = xcds;
        return;
      }
    } catch (const isa::Error&) { // they wait for others
    }
  }
  run_only(one_of(1, r.workgroups));
}

} // namespace

const Workgroup& Record::representative_of(uint32_t number) const {
  const auto after = std::ranges::upper_bound(recorded, number, {}, &Workgroup::number);
  return after == recorded.begin() ? *after : *std::prev(after);
}

Record record(const isa::CodeObject& object, std::string_view name, const exec::Grid& grid, std::span<const std::byte> arguments,
              exec::Memory& memory, const RecordOptions& options) {
  const uint64_t max_steps = options.max_steps;
  const isa::Kernel& kernel = object.kernel(name);
  const isa::TargetFacts& target = object.target();
  isa::Disassembler disassembler(target);
  const isa::Program program = isa::build_program(kernel, disassembler);
  const std::vector<isa::Instruction>& instructions = program.instructions;
  Record r = of_launch(kernel, target, instructions, grid);
  const Restore restore(memory);
  Slice slice(program, communicates(r.code) || may_wait_for_others(r.code));
  const auto run_only = [&](std::span<const uint32_t> only) {
    const auto restored_run = [&] {
      restore();
      return run(object, name, grid, arguments, memory, only, r.waves, max_steps, slice, r.code);
    };
    try {
      r.recorded = restored_run();
    } catch (const StoresDecide&) {
      slice = Slice(program, true);
      r.recorded = restored_run();
    }
  };
  const bool together = may_wait_for_others(r.code) && r.workgroups <= max_that_wait;
  if (together) run_together(r, options.xcds, run_only);
  else run_only(std::vector<uint32_t>{0});
  const uint64_t steps = r.recorded.front().steps(), all_steps = steps * r.workgroups;
  const auto affordable_sample = static_cast<uint32_t>(std::clamp<uint64_t>(max_steps / (2 * steps), 1, sampled_workgroups));
  if (!together && all_steps > cheap_steps && !communicates(r.code)) run_only(sample(r.workgroups, affordable_sample));
  const bool alike = r.recorded.size() > 1 &&
                     std::ranges::all_of(r.recorded, [&](const Workgroup& w) { return w.signature == r.recorded.front().signature; });
  if (alike) r.buffers = count_buffers(r, memory);
  if (!together && r.recorded.size() < r.workgroups && (!alike || !begin_alike(r))) {
    const uint32_t xcds = communicates(r.code) ? 1 : options.xcds;
    if (all_steps <= affordable_steps * xcds) {
      r.xcds = xcds;
      run_only(one_of(xcds, r.workgroups));
    } else {
      run_only(sample(r.workgroups, static_cast<uint32_t>(std::max<uint64_t>(affordable_steps * r.workgroups / all_steps, 1))));
    }
  }
  r.buffers = count_buffers(r, memory);
  for (Workgroup& w : r.recorded) measure_spans(w, r.buffers);
  for (std::size_t i = 0; i < r.buffers.size(); ++i) r.buffers[i].sharers = sharers_of(r, i);
  for (const Buffer& b : r.buffers) {
    r.footprint += line_bytes * b.touched;
    r.moved += line_bytes * (b.touched + b.updated);
  }
  r.flops = matrix_flops(r, instructions, target);
  return r;
}

} // namespace kiln::timing

// isa_lint show: the disassembly of kernels with what the analyses say beside it.
#include "isa_checks/analysis/live_registers.h"
#include "isa_checks/cli/annotate.h"
#include "isa_checks/cli/scan_options.h"
#include "isa_checks/plural.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <map>

namespace kiln::isa::cli {
namespace {

// The lines of source files that lie in one folder, by the names that line tables give.
class SourceTexts {
public:
  // Reads files of `folder`, each when it is first asked for; of none if `folder` is empty. Throws Error if it is no folder.
  explicit SourceTexts(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::error_code error;
    if (!folder_.empty() && !std::filesystem::is_directory(folder_, error))
      throw Error("--sources " + folder_.string(), "it is no folder", "name the folder that holds the files that line tables name");
  }

  // The text of `line`, without the blanks around it. Only the last part of the file's name counts: a line table never leads to
  // another folder. "" if the folder has no such file, or the file no such line.
  std::string_view at(const SourceLine& line) {
    if (folder_.empty() || !line.known()) return {};
    const std::vector<std::string>& lines = lines_of(std::filesystem::path(line.file).filename().string());
    const auto index = static_cast<std::size_t>(line.line) - 1;
    return index < lines.size() ? std::string_view(lines[index]) : std::string_view();
  }

private:
  const std::vector<std::string>& lines_of(const std::string& name) {
    const auto [entry, is_new] = files_.try_emplace(name);
    std::error_code error;
    if (is_new && !name.empty() && std::filesystem::is_regular_file(folder_ / name, error)) {
      std::ifstream file(folder_ / name);
      for (std::string line; std::getline(file, line);) {
        const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
        const std::size_t end = line.find_last_not_of(" \t\r");
        entry->second.push_back(end == std::string::npos ? "" : line.substr(begin, end + 1 - begin));
      }
    }
    return entry->second;
  }

  std::filesystem::path folder_;
  std::map<std::string, std::vector<std::string>, std::less<>> files_; // by name
};

class Listing {
public:
  Listing(const KernelAnalysis& analysis, const ScannedKernel& kernel, SourceTexts& sources, bool colour)
      : a_(analysis), k_(kernel), sources_(sources), colour_(colour), outstanding_(outstanding_counts(analysis.program)),
        live_(live_registers(analysis.program)),
        has_exp_(std::ranges::any_of(outstanding_, [](const OutstandingCounts& o) { return o.max_exp > 0; })),
        waits_(waits_by_instruction(analysis)), findings_(findings_by_instruction(analysis.program, kernel.findings)) {}

  std::string run() {
    text_ = fmt::format("{} {}\n", paint("1", printable(readable_name(k_.facts.kernel))), printable(k_.object));
    text_ += printable(to_text(k_.facts));
    text_ += fmt::format("  {:<16} {}\n", "live VGPRs", to_text(live_, a_.program));
    for (const LoopFlight& loop : a_.waits.loops)
      if (loop.loads > 0)
        text_ += fmt::format("  {:<16} {} of loads a wave and trip, at least {} in flight, {}\n", fmt::format("loop {}", loop.loop),
                             bytes(loop.bytes_a_trip), bytes(loop.min_bytes), plural(loop.drains, "full drain"));
    if (a_.waits.approximate) text_ += "  calls or irreducible flow: what is outstanding after them is a guess\n";
    for (const Finding* finding : findings_.back()) add_finding(*finding, 2);
    text_ += fmt::format("\n{}\n", margin("address", "vm", "lgkm", "exp", "live", "cost"));
    for (std::size_t b = 0; b < a_.program.blocks.size(); ++b) add_block(b);
    return std::move(text_);
  }

private:
  std::string paint(std::string_view code, std::string_view text) const { return painted(colour_, code, text); }

  static std::string bytes(std::uint32_t count) {
    return count % 1024 == 0 && count > 0 ? fmt::format("{} KiB", count / 1024) : fmt::format("{} B", count);
  }

  // The column exp is there where a kernel uses that counter; hardly one does.
  std::string margin(std::string_view address, std::string_view vm, std::string_view lgkm, std::string_view exp, std::string_view live,
                     std::string_view cost) const {
    return fmt::format("{:>8} {:>5} {:>5}", address, vm, lgkm) + (has_exp_ ? fmt::format(" {:>5}", exp) : "") +
           fmt::format(" {:>5} {:>5}", live, cost);
  }
  int margin_width() const { return has_exp_ ? 38 : 32; }

  int depth(std::size_t block) const {
    const std::size_t loop = a_.program.blocks[block].loop;
    return loop == nothing ? 0 : a_.program.loops[loop].depth;
  }

  void add_block(std::size_t index) {
    const Block& block = a_.program.blocks[index];
    std::string heading = fmt::format("block_{}:", index);
    for (std::size_t l = 0; l < a_.program.loops.size(); ++l)
      if (a_.program.loops[l].header == index)
        heading += fmt::format("  ; {}, depth {}, {}", a_.program.loop_name(l), a_.program.loops[l].depth, bound_text(a_.issue.loops[l]));
    heading += block.reachable ? edges(block) : "  ; unreachable";
    if (const auto label = a_.labels.find(a_.program.instructions[block.begin].address); label != a_.labels.end())
      heading += fmt::format("  ; {}:", printable(label->second));
    text_ += fmt::format("{:{}}{}\n", "", margin_width() + 2 + 2 * depth(index), paint("36", heading));
    for (std::size_t i = block.begin; i < block.end; ++i) add_instruction(i, margin_width() + 4 + 2 * depth(index));
  }

  static std::string bound_text(const LoopIssue& loop) {
    const double clocks = std::max(loop.memory_clocks, loop.clocks_of(loop.busiest));
    return fmt::format("{:.0f} clocks per trip, bound by {}", clocks, loop.memory_bound() ? "memory" : to_string(loop.busiest));
  }

  // Vector registers that are live before the instruction.
  std::string live_text(std::size_t index) const {
    const int live = live_.before[index].all();
    return live > 0 ? fmt::format("{}", live) : "";
  }

  // Clocks of its pipe.
  std::string cost_text(std::size_t index) const {
    const double clocks = instruction_cost(a_.program.instructions[index], a_.memory.find(index), *a_.target).clocks;
    return clocks > 0 ? fmt::format("{:g}", clocks) : "";
  }

  // The flow graph: "  ; from 3, 7, to 4, 9". What only falls through says nothing.
  std::string edges(const Block& block) const {
    const std::size_t index = a_.program.block_of(block.begin);
    const bool plain_in = block.predecessors.empty() || (block.predecessors.size() == 1 && block.predecessors[0] + 1 == index);
    const bool plain_out = block.successors.empty() || (block.successors.size() == 1 && block.successors[0] == index + 1);
    std::string text;
    if (!plain_in) text += fmt::format("  ; from {}", fmt::join(block.predecessors, ", "));
    if (!plain_out) text += fmt::format("{} to {}", text.empty() ? "  ;" : ",", fmt::join(block.successors, ", "));
    return text;
  }

  // The margin says what is outstanding, and how many vector registers are live, before the instruction, and what it costs.
  void add_instruction(std::size_t index, int column) {
    const Instruction& instruction = a_.program.instructions[index];
    const OutstandingCounts& o = outstanding_[index];
    add_line_of_source(index, column);
    text_ += paint("2", margin(fmt::format("{:x}", instruction.address), range_text(o.min_vm, o.max_vm), range_text(o.min_lgkm, o.max_lgkm),
                               range_text(o.min_exp, o.max_exp), live_text(index), cost_text(index)));
    const InstructionClass kind = instruction.kind;
    const bool memory = instruction.memory.has_value();
    const std::string_view colour = kind == InstructionClass::wait ? "33" : memory ? "32" : instruction.valid ? "0" : "31";
    text_ += fmt::format("{:{}}{}{}\n", "", column - margin_width(), paint(colour, instruction.text), target_label(instruction));
    for (const WaitPoint* point : waits_[index])
      text_ += fmt::format("{:{}}{}\n", "", column, paint("33", "^ " + explain_wait(*point, a_.program)));
    for (const Finding* finding : findings_[index]) add_finding(*finding, column);
  }

  std::string target_label(const Instruction& instruction) const {
    if (!instruction.branch_target || instruction.flow == Flow::call) return {};
    const auto address = [this](const Block& block) { return a_.program.instructions[block.begin].address; };
    const auto at = std::ranges::lower_bound(a_.program.blocks, *instruction.branch_target, {}, address);
    if (at == a_.program.blocks.end() || address(*at) != *instruction.branch_target) return "  ; to outside of the kernel";
    return fmt::format("  ; to block_{}", at - a_.program.blocks.begin());
  }

  void add_line_of_source(std::size_t index, int column) {
    if (a_.lines.empty() || !a_.lines[index].known()) return;
    const SourceLine& line = a_.lines[index];
    if (line.file == k_.file) return; // assembly text is its own source
    if (line.file == last_.file && line.line == last_.line) return;
    last_ = line;
    const std::string_view text = sources_.at(line);
    text_ += fmt::format("{}{:{}}{}\n", paint("2", margin("", "", "", "", live_text(index), "")), "", column - margin_width(),
                         paint("2", printable(fmt::format("; {}:{}{}{}", line.file, line.line, text.empty() ? "" : "  ", text))));
  }

  void add_finding(const Finding& f, int column) {
    text_ += fmt::format("{:{}}{}\n", "", column,
                         paint(colour_of(f.severity), fmt::format("! {} {}: {}", f.rule, to_string(f.severity), f.message)));
    text_ += fmt::format("{:{}}  try: {}\n", "", column, f.advice);
  }

  const KernelAnalysis& a_;
  const ScannedKernel& k_;
  SourceTexts& sources_;
  bool colour_;
  std::vector<OutstandingCounts> outstanding_;
  LiveRegisters live_;
  bool has_exp_; // something counts in expcnt
  std::vector<std::vector<const WaitPoint*>> waits_;
  std::vector<std::vector<const Finding*>> findings_;
  SourceLine last_;
  std::string text_;
};

class Show : public Command {
public:
  Show() : Command("isa_lint show", "Annotated disassembly: loops indented, what each wait waits for, findings in place") {
    app.add_option("files", files_, "As for isa_lint")->required()->type_name("FILES");
    app.add_option("--sources", sources_, "Where the files lie that line tables name: their lines are shown beside their numbers")
        ->type_name("FOLDER");
    add_input_options(app, arguments_);
    add_rule_options(app, arguments_);
    app.footer("\nThe columns vm, lgkm and (where anything counts there) exp count the operations outstanding before an "
               "instruction, over all paths to it; live counts the vector registers that it or a later one reads, beside a line of source "
               "those that are live where it begins; cost is the "
               "clocks of its pipe for one wave, by the issue estimate. A block's heading names "
               "the blocks that it is reached from and leads to, what bounds a loop that begins there, and the symbol of its address.");
  }

  int run(Streams& streams) override {
    if (arguments_.severity.empty()) arguments_.severity = "info";
    ScanOptions options = to_scan(arguments_, files_);
    options.functions = !arguments_.kernels.empty(); // by name only: a library may have thousands
    const SourceTexts unread(sources_);
    ScanSink sink;
    std::string_view separator;
    sink.render = [&](const KernelAnalysis& analysis, const ScannedKernel& kernel) { // by several threads
      SourceTexts sources = unread;
      return Listing(analysis, kernel, sources, streams.colour).run();
    };
    sink.kernel = [&](ScannedKernel&& kernel) {
      streams.out << separator << kernel.rendered;
      separator = "\n";
    };
    return scan_with_progress(options, sink, streams).errors > 0 ? unusable : clean;
  }

private:
  ScanArguments arguments_;
  std::vector<std::string> files_;
  std::string sources_;
};

} // namespace

std::unique_ptr<Command> make_show() { return std::make_unique<Show>(); }

} // namespace kiln::isa::cli

// isa_lint facts: a table of what each kernel needs and does.
#include "isa_checks/cli/scan_options.h"
#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace kiln::isa::cli {
namespace {

using Row = std::array<std::string, 11>;
constexpr std::array<const char*, 11> header{"KERNEL", "ARCH",  "VGPR",  "SGPR",   "LDS",    "SCRATCH",
                                             "WAVES",  "LIMIT", "LOADS", "STORES", "LDS OPS"};

Row row(const KernelFacts& f) {
  using enum MemorySpace;
  using enum MemoryDirection;
  const Resources& r = f.resources;
  return {printable(readable_name(f.kernel)),
          f.arch,
          r.agprs > 0 ? fmt::format("{} ({}+{})", r.vgprs, r.arch_vgprs, r.agprs) : fmt::format("{}", r.vgprs),
          fmt::format("{}", r.sgprs),
          fmt::format("{}", r.lds_bytes),
          fmt::format("{}", r.scratch_bytes),
          fmt::format("{:g}", f.occupancy.waves_per_simd),
          std::string(to_string(f.occupancy.limit)),
          widths_text(f.widths({global, buffer, flat}, {load})),
          widths_text(f.widths({global, buffer, flat}, {store})),
          widths_text(f.widths({lds}, {load, store}))};
}

class Facts : public Command {
public:
  Facts()
      : Command("isa_lint facts", "A table: registers, LDS and scratch bytes, waves per SIMD and what limits them, bytes per lane "
                                  "of memory instructions") {
    app.add_option("files", files_, "As for isa_lint")->required()->type_name("FILES");
    add_input_options(app, arguments_);
    app.add_flag("--json", json_, "One JSON object a line and kernel, with every fact");
    app.add_flag("--long", long_, "Every fact as text");
    app.add_flag("--analyses", analyses_,
                 "What the analyses say too: occupancy, memory, waits, bytes in flight, matrix operations, issue and "
                 "roofline; as text, with --json as JSON");
  }

  int run(Streams& streams) override {
    ScanOptions options = to_scan(arguments_, files_);
    options.lint = false;
    options.policy.no_settings = true;
    ScanSink sink;
    std::vector<Row> rows;
    if (analyses_)
      sink.render = [&](const KernelAnalysis& analysis, const ScannedKernel&) { // by several threads
        return json_ ? one_line(to_json(analysis)) + "\n" : printable(to_text(analysis));
      };
    sink.kernel = [&](ScannedKernel&& kernel) {
      if (analyses_) streams.out << kernel.rendered;
      else if (json_) streams.out << one_line(to_json(kernel.facts)) << '\n';
      else if (long_) streams.out << printable(to_text(kernel.facts));
      else rows.push_back(row(kernel.facts));
    };
    const ScanTotals totals = scan_with_progress(options, sink, streams);
    if (!rows.empty()) print(streams.out, rows);
    return totals.errors > 0 ? unusable : clean;
  }

private:
  // The indented form ends each line inside of strings' ends only, so line feeds and indents can go.
  static std::string one_line(const std::string& json) {
    std::string line;
    for (std::size_t at = 0; at < json.size(); ++at)
      if (json[at] == '\n') at = json.find_first_not_of(' ', at + 1) - 1;
      else line += json[at];
    return line;
  }

  static void print(std::ostream& out, const std::vector<Row>& rows) {
    std::array<std::size_t, header.size()> width{};
    constexpr std::size_t widest = 60; // of a name; longer ones push their row to the right
    for (std::size_t c = 0; c < header.size(); ++c) {
      width[c] = std::string_view(header[c]).size();
      for (const Row& row : rows) width[c] = std::max(width[c], std::min(row[c].size(), widest));
    }
    const auto line = [&](const auto& cells) {
      std::string text;
      for (std::size_t c = 0; c < header.size(); ++c)
        text += c + 1 == header.size() ? std::string(cells[c]) : fmt::format("{:<{}}  ", cells[c], width[c]);
      out << text << '\n';
    };
    line(header);
    for (const Row& row : rows) line(row);
  }

  ScanArguments arguments_;
  std::vector<std::string> files_;
  bool json_ = false, long_ = false, analyses_ = false;
};

} // namespace

std::unique_ptr<Command> make_facts() { return std::make_unique<Facts>(); }

} // namespace kiln::isa::cli

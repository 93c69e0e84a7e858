// The HTML report: the kernels as JSON inside of pages whose script draws them.
#include "isa_checks/analysis/live_registers.h"
#include "isa_checks/cli/annotate.h"
#include "isa_checks/cli/report/html_pages.h"
#include "isa_checks/cli/report/report.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::isa::cli {
namespace {

using Json = nlohmann::ordered_json;

// A browser shows this many instructions of a kernel; the page says how many there are.
constexpr std::size_t max_instructions = 20'000;

// JSON inside of a script element: no "<" may stand in it.
std::string embedded(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace))
    text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

Json occupancy_json(const KernelAnalysis& a) {
  const Occupancy& o = a.facts.occupancy;
  const TargetFacts& t = *a.target;
  const int waves_a_workgroup = std::max(1, (a.facts.resources.workgroup_size + wave_size - 1) / wave_size);
  const double lds_waves = std::min<double>(max_waves_per_simd, double(o.lds_workgroups) * waves_a_workgroup / simds_per_cu);
  return {{"waves", o.waves_per_simd},
          {"limit", to_string(o.limit)},
          {"max", max_waves_per_simd},
          {"vgpr_waves", o.vgpr_waves},
          {"sgpr_waves", o.sgpr_waves},
          {"lds_waves", lds_waves},
          {"next_vgprs", o.next_vgprs},
          {"vgprs_total", max_vgprs},
          {"allocated_vgprs", o.allocated_vgprs},
          {"lds_total", t.lds_bytes},
          {"allocated_lds", o.allocated_lds_bytes},
          {"workgroups", o.workgroups_per_cu},
          {"workgroup_waves", waves_a_workgroup},
          {"step", to_text(a.occupancy)}};
}

// Clocks of each pipe for one repetition of a loop, and of memory at the chip's bandwidth.
Json issue_json(const LoopIssue& issue) {
  Json clocks = Json::object();
  for (std::size_t p = 0; p < pipe_count; ++p) clocks[std::string(to_string(static_cast<Pipe>(p)))] = issue.clocks[p];
  return {{"clocks", clocks},
          {"nops", issue.nop_clocks},
          {"memory", issue.memory_clocks},
          {"intensity", issue.intensity()},
          {"operations", issue.operations},
          {"bytes", issue.memory_bytes}};
}

Json loops_json(const KernelAnalysis& a) {
  Json list = Json::array();
  for (std::size_t l = 0; l < a.program.loops.size(); ++l) {
    const Loop& loop = a.program.loops[l];
    const LoopFlight& flight = a.waits.loops[l];
    Json blocks = Json::array();
    for (const std::size_t b : loop.blocks) blocks.push_back({a.program.blocks[b].begin, a.program.blocks[b].end});
    list.push_back({{"name", a.program.loop_name(l)},
                    {"depth", loop.depth},
                    {"innermost", a.is_innermost(l)},
                    {"blocks", blocks},
                    {"loads", flight.loads},
                    {"bytes_a_trip", flight.bytes_a_trip},
                    {"min_bytes", flight.min_bytes},
                    {"max_bytes", flight.max_bytes},
                    {"drains", flight.drains}});
  }
  for (std::size_t l = 0; l < a.program.loops.size(); ++l) list[l]["issue"] = issue_json(a.issue.loops[l]);
  for (const LoopConcurrency& c : a.concurrency)
    list[c.loop]["cu"] = {{"least", c.min_cu_bytes}, {"most", c.max_cu_bytes}, {"needed", c.needed_cu_bytes}};
  return list;
}

// One array an instruction, short because there are many: text, class, depth, block that begins here or -1, outstanding
// (least and most of vmcnt, lgkmcnt and expcnt), line of source or "", live vector registers, and for branches the instruction at the
// target.
Json code_json(const KernelAnalysis& a, const LiveRegisters& live, const std::string& file) {
  Json list = Json::array();
  const std::vector<OutstandingCounts> outstanding = outstanding_counts(a.program);
  std::size_t block = 0;
  for (std::size_t i = 0; i < std::min(a.program.instructions.size(), max_instructions); ++i) {
    while (a.program.blocks[block].end <= i) ++block;
    const Block& b = a.program.blocks[block];
    const Instruction& instruction = a.program.instructions[i];
    const OutstandingCounts& o = outstanding[i];
    const bool sourced = !a.lines.empty() && a.lines[i].known() && a.lines[i].file != file; // assembly text is its own source
    Json row{instruction.address,
             instruction.text,
             to_string(instruction.kind),
             b.loop == nothing ? 0 : a.program.loops[b.loop].depth,
             b.begin == i ? static_cast<int>(block) : -1,
             range_text(o.min_vm, o.max_vm),
             range_text(o.min_lgkm, o.max_lgkm),
             range_text(o.min_exp, o.max_exp),
             sourced ? fmt::format("{}:{}", a.lines[i].file, a.lines[i].line) : "",
             live.before[i].all()};
    const bool branches = instruction.flow == Flow::jump || instruction.flow == Flow::branch;
    if (const std::size_t to = branches ? a.program.instruction_at(*instruction.branch_target) : nothing; to != nothing) row.push_back(to);
    list.push_back(std::move(row));
  }
  return list;
}

// The blocks: their first instruction, how many they have, the depth of their loop, and the blocks that they lead to.
Json flow_json(const KernelAnalysis& a) {
  Json list = Json::array();
  for (const Block& b : a.program.blocks)
    if (b.begin < max_instructions)
      list.push_back({b.begin, b.end - b.begin, b.loop == nothing ? 0 : a.program.loops[b.loop].depth, b.successors, b.reachable});
  return list;
}

Json live_json(const KernelAnalysis& a, const LiveRegisters& live) {
  Json values = Json::array();
  for (const LiveValues& v : live.values) values.push_back({{"writer", v.writer}, {"registers", v.registers}, {"names", v.names}});
  return {{"text", to_text(live, a.program)}, {"peak", live.peak == nothing ? Json() : Json(live.peak)}, {"values", values}};
}

Json waits_json(const KernelAnalysis& a) {
  Json list = Json::array();
  for (const WaitPoint& p : a.waits.points)
    list.push_back({{"at", p.instruction},
                    {"counter", to_string(p.counter)},
                    {"value", p.value},
                    {"most", p.max_outstanding},
                    {"for", p.waits_for},
                    {"text", explain_wait(p, a.program)}});
  return list;
}

Json findings_json(const KernelAnalysis& a, const std::vector<Finding>& list) {
  const auto by_instruction = findings_by_instruction(a.program, list);
  Json findings = Json::array();
  for (std::size_t i = 0; i < by_instruction.size(); ++i)
    for (const Finding* f : by_instruction[i])
      findings.push_back({{"rule", f->rule},
                          {"severity", to_string(f->severity)},
                          {"at", i < a.program.instructions.size() ? Json(i) : Json()},
                          {"place", f->file.empty() ? "" : fmt::format("{}:{}", f->file, f->line)},
                          {"loop", f->loop},
                          {"message", f->message},
                          {"path", f->path},
                          {"why", f->why},
                          {"advice", f->advice}});
  return findings;
}

// What the table of kernels shows of one; also the beginning of the whole.
Json row_json(const ScannedKernel& kernel) {
  Json findings = Json::array();
  for (const Finding& f : kernel.findings) findings.push_back({{"rule", f.rule}, {"severity", to_string(f.severity)}});
  const Resources& r = kernel.facts.resources;
  return {{"kernel", kernel.facts.kernel},
          {"name", readable_name(kernel.facts.kernel)},
          {"object", kernel.object},
          {"arch", kernel.facts.arch},
          {"resources", {{"vgprs", r.vgprs}, {"sgprs", r.sgprs}, {"lds_bytes", r.lds_bytes}, {"scratch_bytes", r.scratch_bytes}}},
          {"occupancy", {{"waves", kernel.facts.occupancy.waves_per_simd}, {"max", max_waves_per_simd}}},
          {"instructions", kernel.facts.instructions},
          {"findings", findings}};
}

class HtmlReport : public ReportWriter {
public:
  HtmlReport(std::ostream& out, const std::string& file) : pages_(out, file) {}
  bool renders() const override { return true; }

  std::string render(const KernelAnalysis& a, const ScannedKernel& kernel) const override {
    const LiveRegisters live = live_registers(a.program);
    Json json = row_json(kernel);
    json["target"] = a.facts.target_id;
    const Json facts = Json::parse(to_json(a.facts));
    json["resources"] = facts["resources"];
    json["occupancy"] = occupancy_json(a);
    json["code_bytes"] = a.facts.code_bytes;
    json["mix"] = {{"classes", facts["classes"]}, {"memory", facts["memory"]}};
    json["loops"] = loops_json(a);
    json["waits"] = waits_json(a);
    json["flow"] = flow_json(a);
    json["live"] = live_json(a, live);
    json["code"] = code_json(a, live, kernel.file);
    json["suppressed"] = kernel.suppressed;
    json["approximate"] = a.waits.approximate;
    json["findings"] = findings_json(a, kernel.findings);
    return embedded(json);
  }

  void kernel(const ScannedKernel& kernel) override {
    for (const Finding& finding : kernel.findings) counts_.add(finding);
    pages_.add(kernel.rendered, embedded(row_json(kernel)), !kernel.findings.empty());
  }

  void failed(const Error& error) override { failures_.push_back(error.what()); }

  void end(const ScanTotals& totals) override {
    const Json head{{"summary", summary_line(totals, counts_)},
                    {"files", totals.files},
                    {"kernels", totals.kernels},
                    {"errors", counts_.errors},
                    {"warnings", counts_.warnings},
                    {"infos", counts_.infos},
                    {"suppressed", totals.suppressed},
                    {"skipped", totals.skipped},
                    {"failures", failures_}};
    pages_.end(embedded(head));
  }

private:
  HtmlPages pages_;
  SeverityCounts counts_;
  std::vector<std::string> failures_;
};

} // namespace

std::unique_ptr<ReportWriter> make_html_report(std::ostream& out, const std::string& file) {
  return std::make_unique<HtmlReport>(out, file);
}

} // namespace kiln::isa::cli

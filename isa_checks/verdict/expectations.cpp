// Comparing a kernel with its expectations.
#include "isa_checks/verdict/expectations.h"
#include "isa_checks/analysis/waits/waits.h"
#include "isa_checks/error.h"
#include "isa_checks/plural.h"
#include "isa_checks/verdict/errata.h"
#include "isa_checks/verdict/lint.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

namespace kiln::isa {
namespace {

constexpr std::size_t max_evidence = 4;

bool is_load(const MemoryOp& op) { return is_device(op) && op.direction == MemoryDirection::load; }
bool is_store(const MemoryOp& op) { return is_device(op) && op.direction == MemoryDirection::store; }
bool is_lds_access(const MemoryOp& op) { return op.space == MemorySpace::lds && op.direction != MemoryDirection::atomic; }

class Checker {
public:
  Checker(const Program& program, const KernelFacts& facts, IsaReport& report) : p_(program), facts_(facts), report_(report) {}

  // What cannot be read keeps no promise.
  void decodable() {
    const auto unread = [this](const Instruction& i) {
      return !i.valid && p_.blocks[p_.block_of(static_cast<std::size_t>(&i - p_.instructions.data()))].reachable;
    };
    auto evidence = instructions(unread);
    if (matched_ > 0) add({"decodable", "all code", plural(matched_, "word") + " that LLVM cannot decode", false, std::move(evidence)});
  }

  void resources(const Expectations& e) {
    const Resources& r = facts_.resources;
    if (e.no_scratch) {
      auto evidence = instructions([](const Instruction& i) { return i.mnemonic.starts_with("scratch_"); });
      const bool met = r.scratch_bytes == 0 && evidence.empty();
      add({"no_scratch", "0 bytes",
           fmt::format("{} bytes per lane, {}", r.scratch_bytes, plural(static_cast<std::size_t>(matched_), "scratch instruction")), met,
           std::move(evidence)});
    }
    if (e.no_spills) spills(e);
    if (e.max_vgprs) at_most("max_vgprs", *e.max_vgprs, r.vgprs);
    if (e.max_lds_bytes) at_most("max_lds_bytes", *e.max_lds_bytes, r.lds_bytes);
    if (e.min_waves_per_simd) {
      const Occupancy& o = facts_.occupancy;
      at_least("min_waves_per_simd", *e.min_waves_per_simd, o.waves_per_simd,
               fmt::format("{:g}, limited by {}", o.waves_per_simd, to_string(o.limit)));
    }
  }

  // A kind of registers of which some may be spilled has a limit of its own.
  void spills(const Expectations& e) {
    const Resources& r = facts_.resources;
    const bool vgprs = e.max_vgpr_spills == 0, sgprs = e.max_sgpr_spills == 0; // none may be spilled
    const bool met = (!vgprs || r.vgpr_spills == 0) && (!sgprs || r.sgpr_spills == 0);
    const std::string wanted = vgprs && sgprs ? "0 registers" : fmt::format("0 {}GPR", vgprs ? 'V' : 'S');
    if (vgprs || sgprs) add({"no_spills", wanted, fmt::format("{} VGPR, {} SGPR", r.vgpr_spills, r.sgpr_spills), met, {}});
    if (!vgprs) at_most("max_vgpr_spills", e.max_vgpr_spills, r.vgpr_spills);
    if (!sgprs) at_most("max_sgpr_spills", e.max_sgpr_spills, r.sgpr_spills);
  }

  template <class Wanted> void widths(std::string name, const WidthExpectation& e, Wanted wanted) {
    if (e.min_bytes == 0) return;
    add(judged(std::move(name), e, moved(e, wanted)));
  }

  void required(const std::string& prefix) {
    instructions([&](const Instruction& i) { return i.mnemonic.starts_with(prefix); });
    add({"required " + prefix, "some", std::to_string(matched_), matched_ > 0, {}});
  }

  void forbidden(const std::string& prefix) {
    auto evidence = instructions([&](const Instruction& i) { return i.mnemonic.starts_with(prefix); });
    add({"forbidden " + prefix, "none", std::to_string(matched_), matched_ == 0, std::move(evidence)});
  }

  // `findings`: what the rules of faults of compilers say, which need more than one instruction.
  void no_errata(const std::vector<Finding>& findings) {
    const TargetFacts& target = target_facts(facts_.arch);
    std::map<std::string, std::size_t, std::less<>> rules;
    auto evidence = instructions([&](const Instruction& i) {
      const auto erratum = erratum_of(i, target);
      return erratum && erratum->severity == Severity::error && ++rules[std::string(erratum->rule)] > 0;
    });
    for (const Finding& finding : findings) ++rules[finding.rule];
    add_findings(evidence, findings);
    std::string found;
    for (const auto& [rule, count] : rules) found += fmt::format("{}{} {}", found.empty() ? "" : ", ", count, rule);
    add({"no_errata", "none", found.empty() ? "0" : found, found.empty(), std::move(evidence)});
  }

  void max_instructions(std::uint32_t most) { at_most("max_instructions", most, facts_.instructions); }

  void max_barriers(std::uint32_t most) {
    auto evidence = instructions([](const Instruction& i) { return i.mnemonic == "s_barrier"; });
    at_most("max_barriers", most, static_cast<double>(matched_), std::move(evidence));
  }

  void loops(const Expectations& e) {
    const bool has_granted = e.no_spills && e.max_vgpr_spills + e.max_sgpr_spills > 0;
    const bool spilled = facts_.resources.vgpr_spills + facts_.resources.sgpr_spills > 0;
    const bool asks_widths = e.loads_outside_loops.min_bytes + e.loop_loads.min_bytes + e.loop_lds.min_bytes > 0;
    if (!e.max_loop_drains && !e.min_bytes_in_flight && !e.min_loops && !e.min_loop_wait && !e.max_loop_barriers && !asks_widths &&
        !has_granted)
      return;
    in_loops_with_ = e.in_loops_with;
    const WaitAnalysis waits = analyse_waits(p_);
    if (!waits.complete) {
      const std::string found = "not analysed: the flow graph exceeds the work budget";
      if (e.max_loop_drains) add({"max_loop_drains", fmt::format("<= {}", *e.max_loop_drains), found, false, {}});
      if (e.min_bytes_in_flight) add({"min_bytes_in_flight", fmt::format(">= {}", *e.min_bytes_in_flight), found, false, {}});
      if (has_granted && spilled) add({"spills_in_loops", "none", found, false, {}});
      if (e.min_loops || e.min_loop_wait || e.max_loop_barriers || asks_widths) add({"min_loops", "streaming loops", found, false, {}});
      return;
    }
    for (const LoopFlight& flight : waits.loops)
      if (is_asked_about(flight, waits)) streaming_.push_back(flight.loop);
    loop_widths(e);
    if (e.min_loops) at_least("min_loops", *e.min_loops, static_cast<double>(streaming_.size()), std::to_string(streaming_.size()));
    if (e.max_loop_barriers) loop_barriers(*e.max_loop_barriers);
    if (e.min_loop_wait) loop_waits(*e.min_loop_wait, waits);
    if (has_granted) spills_in_loops(waits);
    if (e.max_loop_drains) {
      std::vector<std::string> evidence;
      std::uint32_t drains = 0;
      for (const WaitPoint& point : waits.points) {
        if (point.counter != WaitCounter::vmcnt || !point.drains() || !in_loading_loop(point.loop, waits) || !is_meant(point.loop, waits))
          continue;
        if (++drains <= max_evidence) evidence.push_back(at(p_.instructions[point.instruction]));
      }
      at_most("max_loop_drains", *e.max_loop_drains, drains, std::move(evidence));
    }
    if (e.min_bytes_in_flight) bytes_in_flight(*e.min_bytes_in_flight, waits);
  }

  void no_findings(const std::string& entry, const std::vector<Finding>& findings) {
    std::vector<std::string> evidence;
    add_findings(evidence, findings);
    add({"no_findings " + entry, "none", std::to_string(findings.size()), findings.empty(), std::move(evidence)});
  }

private:
  static void add_findings(std::vector<std::string>& evidence, const std::vector<Finding>& findings) {
    for (const Finding& f : findings)
      if (evidence.size() < max_evidence) evidence.push_back(fmt::format("{:#x}: {}: {}", f.address.value_or(0), f.instruction, f.message));
  }

  struct Moved {
    std::map<int, std::uint32_t> found; // instructions by bytes
    std::uint32_t narrow = 0, wide = 0;
    std::vector<std::string> evidence; // of narrow ones
  };
  // What the memory instructions that are `wanted` move, in all of the code or in one loop.
  template <class Wanted> Moved moved(const WidthExpectation& e, Wanted wanted) const {
    Moved result;
    for (std::size_t i = 0; i < p_.instructions.size(); ++i) add_moved(result, e, i, wanted);
    return result;
  }
  template <class Wanted> Moved moved_in(std::size_t loop, const WidthExpectation& e, Wanted wanted) const {
    Moved result;
    for (const std::size_t i : in_loop(loop)) add_moved(result, e, i, wanted);
    return result;
  }
  template <class Wanted> void add_moved(Moved& sum, const WidthExpectation& e, std::size_t index, Wanted wanted) const {
    const auto op = p_.instructions[index].memory;
    if (!op || !wanted(*op)) return;
    ++sum.found[op->bytes];
    const bool narrow = op->bytes < e.min_bytes;
    ++(narrow ? sum.narrow : sum.wide);
    if (narrow && sum.evidence.size() < max_evidence) sum.evidence.push_back(at(p_.instructions[index]));
  }
  static ExpectationResult judged(std::string name, const WidthExpectation& e, Moved m) {
    std::string expected = fmt::format(">= {} B", e.min_bytes);
    if (e.exceptions > 0) expected += fmt::format(" but for {}{}", e.exceptions, e.excepted.empty() ? "" : " (" + e.excepted + ")");
    if (e.at_least > 0) expected += fmt::format(", at least {} of them", e.at_least);
    const bool met = m.narrow <= e.exceptions && m.wide >= e.at_least;
    if (m.narrow <= e.exceptions) m.evidence.clear();
    std::optional<double> margin;
    if (e.exceptions > 0) margin = static_cast<double>(e.exceptions) - m.narrow;
    if (e.at_least > 0) margin = std::min(margin.value_or(INFINITY), static_cast<double>(m.wide) - e.at_least);
    return {std::move(name), std::move(expected), widths_text(m.found), met, std::move(m.evidence), margin};
  }

  // Each streaming loop by itself; the report has the first that breaks the promise.
  void loop_widths(const Expectations& e) {
    const auto in_each = [&](const std::string& name, const WidthExpectation& asked, auto wanted) {
      if (asked.min_bytes == 0) return;
      std::optional<ExpectationResult> shown;
      for (const std::size_t loop : streaming_) {
        ExpectationResult result = judged(name, asked, moved_in(loop, asked, wanted));
        if (!result.met) result.evidence.insert(result.evidence.begin(), p_.loop_name(loop));
        if (!shown || (shown->met && !result.met)) shown = std::move(result);
      }
      if (!shown) {
        shown = judged(name, asked, {});
        shown->found = "no loop that loads";
        shown->met = true;
      }
      add(std::move(*shown));
    };
    in_each("loop_loads", e.loop_loads, is_load);
    in_each("loop_lds", e.loop_lds, is_lds_access);
    if (e.loads_outside_loops.min_bytes == 0) return;
    Moved outside;
    std::vector<bool> inside(p_.instructions.size());
    for (const std::size_t loop : streaming_)
      for (const std::size_t i : in_loop(loop)) inside[i] = true;
    for (std::size_t i = 0; i < p_.instructions.size(); ++i)
      if (!inside[i]) add_moved(outside, e.loads_outside_loops, i, is_load);
    add(judged("loads_outside_loops", e.loads_outside_loops, std::move(outside)));
  }

  void loop_barriers(std::uint32_t most) {
    std::vector<std::string> evidence;
    std::uint32_t found = 0;
    for (const std::size_t loop : streaming_)
      for (const std::size_t i : in_loop(loop))
        if (p_.instructions[i].mnemonic == "s_barrier" && ++found <= max_evidence) evidence.push_back(at(p_.instructions[i]));
    at_most("max_loop_barriers", most, found, std::move(evidence));
  }

  // Waits that have nothing to wait for take no time, whatever they leave.
  void loop_waits(std::uint32_t least, const WaitAnalysis& waits) {
    std::vector<std::string> evidence;
    std::optional<int> lowest;
    for (const WaitPoint& point : waits.points) {
      if (point.counter != WaitCounter::vmcnt || point.idle() || !lies_in_streaming(point.loop)) continue;
      lowest = std::min(lowest.value_or(point.value), point.value);
      if (std::cmp_less(point.value, least) && evidence.size() < max_evidence) evidence.push_back(at(p_.instructions[point.instruction]));
    }
    at_least("min_loop_wait", least, lowest, lowest ? std::to_string(*lowest) : "no wait in a loop that loads", std::move(evidence));
  }
  bool lies_in_streaming(std::size_t loop) const {
    return p_.any_around(loop, [&](std::size_t l) { return std::ranges::find(streaming_, l) != streaming_.end(); });
  }

  // Moves to and from AGPRs, and to and from lanes of VGPRs, where registers of that kind are spilled.
  void spills_in_loops(const WaitAnalysis& waits) {
    const Resources& r = facts_.resources;
    const auto moves = [&](const std::string& mnemonic) {
      return (r.vgpr_spills > 0 && mnemonic.starts_with("v_accvgpr_")) ||
             (r.sgpr_spills > 0 && (mnemonic.starts_with("v_readlane_") || mnemonic.starts_with("v_writelane_")));
    };
    std::vector<std::string> evidence;
    std::size_t found = 0;
    for (const LoopFlight& flight : waits.loops) {
      if (!is_asked_about(flight, waits)) continue;
      for (const std::size_t i : in_loop(flight.loop))
        if (moves(p_.instructions[i].mnemonic) && ++found <= max_evidence) evidence.push_back(at(p_.instructions[i]));
    }
    add({"spills_in_loops", "none", plural(found, "move"), found == 0, std::move(evidence)});
  }

  bool in_loading_loop(std::size_t loop, const WaitAnalysis& waits) const {
    return p_.any_around(loop, [&](std::size_t l) { return waits.loops[l].loads > 0; });
  }

  // Whether the loop has what Expectations::in_loops_with asks for, and is innermost then.
  bool is_meant(std::size_t loop, const WaitAnalysis& waits) const {
    if (in_loops_with_.empty()) return true;
    return is_innermost(loop, waits) && has(loop, in_loops_with_);
  }

  // An innermost loop that loads, and has what in_loops_with asks for.
  bool is_asked_about(const LoopFlight& flight, const WaitAnalysis& waits) const {
    return flight.loads > 0 && is_innermost(flight.loop, waits) && is_meant(flight.loop, waits);
  }

  // But for loops that poll a flag, which sleep and load nothing.
  bool is_innermost(std::size_t loop, const WaitAnalysis& waits) const {
    for (std::size_t other = 0; other < p_.loops.size(); ++other)
      if (p_.loops[other].parent == loop && (waits.loops[other].loads > 0 || !has(other, "s_sleep"))) return false;
    return true;
  }

  std::vector<std::size_t> in_loop(std::size_t loop) const { return p_.instructions_of(p_.loops[loop].blocks); }
  bool has(std::size_t loop, std::string_view prefix) const {
    return std::ranges::any_of(in_loop(loop), [&](std::size_t i) { return p_.instructions[i].mnemonic.starts_with(prefix); });
  }

  void bytes_in_flight(std::uint32_t least, const WaitAnalysis& waits) {
    std::vector<std::string> evidence;
    std::optional<std::uint32_t> lowest;
    for (const LoopFlight& flight : waits.loops) {
      if (!is_asked_about(flight, waits)) continue;
      lowest = std::min(lowest.value_or(flight.min_bytes), flight.min_bytes);
      if (flight.min_bytes < least && evidence.size() < max_evidence)
        evidence.push_back(fmt::format("{}: {} to {} bytes", p_.loop_name(flight.loop), flight.min_bytes, flight.max_bytes));
    }
    at_least("min_bytes_in_flight", least, lowest, lowest ? std::to_string(*lowest) : "no loop that loads", std::move(evidence));
  }

  static std::string at(const Instruction& instruction) { return fmt::format("{:#x}: {}", instruction.address, instruction.text); }

  void at_most(const std::string& name, double most, double found, std::vector<std::string> evidence = {}) {
    add({name, fmt::format("<= {:.0f}", most), fmt::format("{:.0f}", found), found <= most, std::move(evidence), most - found});
  }
  // Nothing found: there is nothing that the promise is about.
  void at_least(const std::string& name, double least, std::optional<double> found, std::string text,
                std::vector<std::string> evidence = {}) {
    std::optional<double> margin;
    if (found) margin = *found - least;
    add({name, fmt::format(">= {}", least), std::move(text), !found || *found >= least, std::move(evidence), margin});
  }

  void add(ExpectationResult result) { report_.results.push_back(std::move(result)); }

  // The first instructions that match; matched_ counts them all.
  template <class Matches> std::vector<std::string> instructions(Matches matches) {
    std::vector<std::string> found;
    matched_ = 0;
    for (const Instruction& instruction : p_.instructions)
      if (matches(instruction)) {
        ++matched_;
        if (found.size() < max_evidence) found.push_back(at(instruction));
      }
    return found;
  }

  const Program& p_;
  const KernelFacts& facts_;
  IsaReport& report_;
  std::string in_loops_with_;
  std::vector<std::size_t> streaming_; // loops that Expectations::in_loops_with asks about
  std::size_t matched_ = 0;
};

} // namespace

bool IsaReport::met() const {
  return std::all_of(results.begin(), results.end(), [](const ExpectationResult& result) { return result.met; });
}

namespace {

void check_all(Checker& check, const Expectations& e, const std::vector<Finding>& faults = {}) {
  check.decodable();
  check.resources(e);
  check.widths("global_loads", e.global_loads, is_load);
  check.widths("global_stores", e.global_stores, is_store);
  check.widths("lds", e.lds, is_lds_access);
  for (const std::string& prefix : e.required) check.required(prefix);
  for (const std::string& prefix : e.forbidden) check.forbidden(prefix);
  if (e.no_errata) check.no_errata(faults);
  if (e.max_instructions) check.max_instructions(*e.max_instructions);
  if (e.max_barriers) check.max_barriers(*e.max_barriers);
  check.loops(e);
}

// An entry of no_findings is a rule, or a rule and the least severity that counts: "HAZ002:info".
LintOptions options_of(const std::string& entry) {
  const std::size_t colon = entry.find(':');
  if (colon == std::string::npos) return {.only = {entry}, .least = Severity::warning};
  const auto least = severity_of(entry.substr(colon + 1));
  if (!least)
    throw Error("no_findings: " + entry, "'" + entry.substr(colon + 1) + "' is no severity",
                "write error, warning or info behind the rule, or the rule alone for warnings and errors");
  return {.only = {entry.substr(0, colon)}, .least = *least};
}

} // namespace

IsaReport check_isa(const Program& program, const KernelFacts& facts, const Expectations& e) {
  if (!e.no_findings.empty())
    throw Error("expectations of " + facts.kernel, "no_findings has " + e.no_findings.front() + ", and rules need a KernelAnalysis",
                "call check_isa with what analyse() returns");
  IsaReport report{.kernel = facts.kernel, .arch = facts.arch, .results = {}};
  Checker check(program, facts, report);
  check_all(check, e);
  return report;
}

bool needs_analysis(const Program& program, const Expectations& e) {
  return !e.no_findings.empty() || (e.no_errata && std::ranges::any_of(program.instructions, concerns_compiler_fault));
}

IsaReport check_isa(const KernelAnalysis& kernel, const Expectations& e) {
  IsaReport report{.kernel = kernel.facts.kernel, .arch = kernel.facts.arch, .results = {}};
  Checker check(kernel.program, kernel.facts, report);
  check_all(check, e, e.no_errata ? compiler_faults(kernel) : std::vector<Finding>());
  for (const std::string& entry : e.no_findings) check.no_findings(entry, lint(kernel, options_of(entry)));
  return report;
}

} // namespace kiln::isa

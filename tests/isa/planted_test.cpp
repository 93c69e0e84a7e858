// Defects planted into compiled kernels (planted/kernels.hip), an instruction each: isa_lint finds at least 95 of 100 by the rule that is
// about them, says no more than two things about one, and nothing about the kernels before.
#include "isa_checks/verdict/lint.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <random>
#include <set>

namespace planted_test {
using namespace kiln::isa;

namespace {

using Patch = std::function<void(std::uint8_t*)>; // of an instruction's bytes

struct Defect {
  std::string group, what; // "race", "barrier removed"
  std::string kernel;
  std::size_t at = 0; // byte of the object
  Patch patch;
  std::set<std::string> rules; // any of them finds it
};

constexpr std::uint32_t s_nop = 0xbf800000; // s_nop 0, LLVM's encoding of gfx9

std::uint32_t word(const std::uint8_t* at) {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}
void put(std::uint8_t* at, std::uint32_t value) { std::memcpy(at, &value, sizeof value); }

Patch nothing_done(std::uint32_t bytes) {
  return [bytes](std::uint8_t* at) {
    for (std::uint32_t n = 0; n < bytes; n += 4) put(at + n, s_nop);
  };
}
Patch add_to_word(std::size_t index, std::uint32_t value) {
  return [=](std::uint8_t* at) { put(at + 4 * index, word(at + 4 * index) + value); };
}
Patch set_bits(std::size_t index, std::uint32_t bits) {
  return [=](std::uint8_t* at) { put(at + 4 * index, word(at + 4 * index) | bits); };
}

// Looks for places in one kernel where a single instruction makes the difference.
class Planter {
public:
  Planter(const CodeObject& object, const Kernel& kernel, std::vector<Defect>& list)
      : object_(object), k_(analyse(object, kernel)), list_(list) {}

  void run() {
    for (std::size_t i = 0; i < k_.program.instructions.size(); ++i) {
      races(i);
      waits(i);
      hazards(i);
      uninitialised(i);
      bounds(i);
      costs(i);
    }
    registers();
  }

private:
  std::string_view name(std::size_t i) const { return i < k_.program.instructions.size() ? k_.mnemonic(i) : std::string_view(); }
  std::uint32_t code(std::size_t i) const { return word(k_.instruction(i).bytes.data()); }

  void add(std::string group, std::string what, std::size_t i, Patch patch, std::set<std::string> rules) {
    const std::size_t first = static_cast<std::size_t>(k_.kernel.code.data() - object_.bytes().data());
    list_.push_back({std::move(group), fmt::format("{} at {:#x} {}", what, k_.instruction(i).address, k_.instruction(i).text),
                     k_.kernel.name, first + (k_.instruction(i).address - k_.kernel.entry), std::move(patch), std::move(rules)});
  }

  bool lgkm_before_barrier(std::size_t i) const { return name(i) == "s_waitcnt" && name(i + 1) == "s_barrier"; }
  // The wait is for what was written, not for what was read.
  bool writes_before(std::size_t i) const {
    for (std::size_t n = i; n-- > 0 && name(n) != "s_barrier";)
      if (name(n).starts_with("ds_write")) return true;
      else if (name(n).starts_with("ds_read")) return false;
    return false;
  }

  void races(std::size_t i) {
    if (name(i) == "s_barrier") add("race", "barrier removed", i, nothing_done(4), {"DAT003"});
    if (!lgkm_before_barrier(i) || !writes_before(i)) return;
    add("race", "wait before the barrier removed", i, nothing_done(4), {"DAT003"});
    add("race", "wait behind the barrier", i,
        [](std::uint8_t* at) {
          const std::uint32_t wait = word(at);
          put(at, word(at + 4));
          put(at + 4, wait);
        },
        {"DAT003"});
  }

  void waits(std::size_t i) {
    if (name(i) == "s_waitcnt" && name(i + 1) != "s_barrier") add("wait", "wait removed", i, nothing_done(4), {"DAT001"});
  }

  void hazards(std::size_t i) {
    if (name(i) == "s_nop" && (code(i) & 15U) > 0) add("hazard", "states removed", i, nothing_done(4), {"HAZ002"});
  }

  // The only instruction that writes its result, of which something is made.
  void uninitialised(std::size_t i) {
    const RegisterUse& use = k_.instruction(i).use;
    const InstructionClass c = k_.instruction(i).kind;
    const bool computes = c == InstructionClass::valu || c == InstructionClass::salu;
    if (!computes || use.write_count != 1 || use.writes_any({reg::exec, 3}) || use.writes_any({reg::vgpr, 1})) return;
    for (std::size_t n = 0; n < k_.program.instructions.size(); ++n)
      if (n != i && k_.instruction(n).use.writes_any(use.write_list[0]) && !k_.instruction(n).use.reads_any(use.write_list[0])) return;
    const int entry = k_.kernel.descriptor.user_sgprs + 3; // and the workgroup ids
    if (!use.write_list[0].vector() && use.write_list[0].first < reg::sgpr + entry) return;
    add("uninitialised", "write removed", i, nothing_done(k_.instruction(i).size), {"DAT002"});
  }

  void bounds(std::size_t i) {
    const MemoryAccess* a = k_.memory.find(i);
    if (!a) return;
    if (a->op.space == MemorySpace::lds && !name(i).starts_with("ds_read2") && !name(i).starts_with("ds_write2")) {
      const auto half = static_cast<std::uint32_t>(k_.facts.resources.lds_bytes / 2); // an array's second half lies behind its end
      if (!seen_lds_ && k_.kernel.name != "product" && k_.kernel.name != "transpose") // two arrays; a quarter of one
        add("bounds", "LDS offset too large", i, add_to_word(0, half), {"BND001"});
      seen_lds_ = true;
      if (name(i).ends_with("_b128")) add("bounds", "LDS offset not aligned", i, add_to_word(0, 4), {"BND004"});
    }
    if (a->op.space == MemorySpace::scalar) add("bounds", "argument offset too large", i, add_to_word(1, 0x1000), {"BND002"});
  }

  void registers() { // half of the vector registers (rsrc1, bits 0 to 5, in granules of 8)
    const ElfSection* section = nullptr;
    for (const ElfSection& s : object_.sections())
      if (s.address != 0 && k_.kernel.descriptor_address >= s.address && k_.kernel.descriptor_address - s.address < s.bytes.size())
        section = &s;
    REQUIRE(section);
    if (k_.kernel.descriptor.vgprs < 16) return;
    const std::size_t at = static_cast<std::size_t>(section->bytes.data() - object_.bytes().data()) +
                           (k_.kernel.descriptor_address - section->address) + 48; // compute_pgm_rsrc1
    list_.push_back({"bounds",
                     "fewer registers",
                     k_.kernel.name,
                     at,
                     [](std::uint8_t* byte) { put(byte, (word(byte) & ~63U) | (word(byte) & 63U) / 2); },
                     {"BND003"}});
  }

  void costs(std::size_t i) {
    const bool in_loop = k_.loop_of(i) != nothing;
    constexpr std::uint32_t sc0_sc1 = 1U << 16 | 1U << 25; // of the FLAT encoding, gfx940
    if (name(i).starts_with("global_load_dwordx4") && in_loop) add("cost", "of system scope", i, set_bits(0, sc0_sc1), {"MEM006"});
    if (name(i) == "s_waitcnt" && in_loop && name(i + 1) == "s_barrier") // and for vmcnt(0): nothing is in flight
      add("cost", "waits for all loads", i, [](std::uint8_t* at) { put(at, word(at) & ~0xc00fU); }, {"WAIT001", "WAIT002", "SYNC001"});
    if (name(i) == "s_waitcnt" && in_loop && (code(i) & 15U) > 0 && (code(i) & 15U) < 15 && (code(i) >> 14 & 3U) == 0)
      add("cost", "waits for the whole burst", i, [](std::uint8_t* at) { put(at, word(at) & ~0xc00fU); },
          {"WAIT001", "WAIT002", "WAIT003"});
    if (name(i) == "s_movk_i32" && (code(i) & 0xffffU) == 0x84)
      add("cost", "padding removed", i, [](std::uint8_t* at) { put(at, (word(at) & ~0xffffU) | 0x80); }, {"LDS002"});
  }

  const CodeObject& object_;
  const KernelAnalysis k_;
  std::vector<Defect>& list_;
  bool seen_lds_ = false;
};

std::string clang() {
  for (const char* name : {"clang++-21", "clang++-22", "clang++-20", "clang++"})
    if (std::system(fmt::format("{} --version > /dev/null 2>&1", name).c_str()) == 0) return name;
  return {};
}

CodeObject compile(const std::string& compiler, const std::string& arch) {
  const auto out = std::filesystem::temp_directory_path() / fmt::format("kiln_planted_{}", std::random_device{}());
  const std::string command =
      fmt::format("{} -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -O3 --offload-arch={} "
                  "-I{} {}/tests/isa/planted/kernels.hip -o {}",
                  compiler, arch, KILN_SOURCE_DIR, KILN_SOURCE_DIR, out.string());
  REQUIRE(std::system(command.c_str()) == 0);
  CodeObject object = load_code_object_file(out.string());
  std::filesystem::remove(out);
  return object;
}

std::vector<Finding> findings_of(const CodeObject& object, const std::string& kernel) {
  std::vector<Finding> findings = lint(analyse(object, object.kernel(kernel)));
  std::erase_if(findings, [](const Finding& f) { return f.severity == Severity::info; });
  return findings;
}

// As many of each group as wanted, spread over all of its places.
std::vector<Defect> chosen(const std::vector<Defect>& all) {
  const std::map<std::string, std::size_t> wanted{{"race", 20},          {"wait", 12},   {"hazard", 6},
                                                  {"uninitialised", 12}, {"bounds", 12}, {"cost", 6}};
  std::vector<Defect> result;
  for (const auto& [group, count] : wanted) {
    std::vector<Defect> own;
    std::ranges::copy_if(all, std::back_inserter(own), [&](const Defect& d) { return d.group == group; });
    CHECK_MESSAGE(own.size() >= count, group);
    const std::size_t most = std::min(count, own.size());
    for (std::size_t n = 0; n < most; ++n) result.push_back(own[n * own.size() / most]);
  }
  return result;
}

} // namespace

TEST_CASE("defects planted into compiled kernels") {
  const std::string compiler = clang();
  if (compiler.empty()) {
    MESSAGE("no clang on the PATH: not tested");
    return;
  }
  const bool all = std::getenv("KILN_LINT_ALL") != nullptr; // every place, not a part of them
  for (const std::string arch : {"gfx942", "gfx950"}) {
    CAPTURE(arch);
    const CodeObject object = compile(compiler, arch);
    std::vector<Defect> list;
    for (const Kernel& kernel : object.kernels()) {
      for (const Finding& f : findings_of(object, kernel.name)) CHECK_MESSAGE(false, to_text(f));
      Planter(object, kernel, list).run();
    }
    if (!all) list = chosen(list);
    CHECK(list.size() >= 60);
    std::size_t found = 0;
    std::string missed;
    for (const Defect& defect : list) {
      Bytes bytes(object.bytes().begin(), object.bytes().end());
      defect.patch(bytes.data() + defect.at);
      const auto findings = findings_of(load_code_object(std::move(bytes), "planted"), defect.kernel);
      std::string text;
      for (const Finding& f : findings) text += "  " + f.rule + " " + f.message + "\n";
      CHECK_MESSAGE(findings.size() <= 2, fmt::format("{}: {}\n{}", defect.kernel, defect.what, text));
      const bool right = std::ranges::any_of(findings, [&](const Finding& f) { return defect.rules.contains(f.rule); });
      found += right;
      if (!right) missed += fmt::format("{} {}: {}\n{}", defect.group, defect.kernel, defect.what, text);
    }
    MESSAGE(fmt::format("{}: {} of {} found\n{}", arch, found, list.size(), missed));
    CHECK(20 * found >= 19 * list.size());
  }
}

} // namespace planted_test

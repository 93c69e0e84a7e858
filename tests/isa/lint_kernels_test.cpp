// Rules on kernels that clang compiles: each fires where tests/isa/lint_kernels says that it was planted, and nowhere else.
#include "isa_checks/verdict/lint.h"
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>

namespace lint_kernels_test {
using namespace kiln::isa;

namespace {

const std::string folder = KILN_SOURCE_DIR "/tests/isa/lint_kernels/";

struct Planted {
  std::set<std::string> rules;
  std::map<std::string, int> lines; // rule -> the line that a finding of it must name
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

// The text behind `key` on a line, when it is there.
std::optional<std::string> behind(const std::string& line, const std::string& key) {
  const std::size_t at = line.find(key);
  return at == std::string::npos ? std::nullopt : std::optional(line.substr(at + key.size()));
}

// By kernel: what the comments say for one architecture.
std::map<std::string, Planted> planted_in(const std::string& file, const std::string& arch) {
  std::ifstream stream(folder + file);
  REQUIRE(stream);
  std::map<std::string, Planted> result;
  Planted next;
  std::string line, kernel;
  for (int number = 1; std::getline(stream, line); ++number) {
    for (const std::string& key : {std::string("// lint:"), "// lint " + arch + ":"})
      if (const auto ids = behind(line, key)) {
        const std::vector<std::string> list = words(*ids);
        next.rules = {list.begin(), list.end()};
      }
    const bool for_both = line.find("// lint here:") != std::string::npos,
               for_this = line.find("// on " + arch + " lint here:") != std::string::npos;
    if (for_both || for_this)
      for (const std::string& id : words(*behind(line, "lint here:"))) result[kernel].lines[id] = number;
    const std::size_t name = line.find("void ");
    if (name == std::string::npos || line.find("DEVICE") == 0 ||
        (line.find("KERNEL(") == std::string::npos && line.find("extern \"C\"") == std::string::npos))
      continue;
    kernel = line.substr(name + 5, line.find('(', name) - name - 5);
    result[kernel] = next;
    next = {};
  }
  return result;
}

// The first clang on the PATH, or "".
std::string clang() {
  for (const char* name : {"clang++-21", "clang++-22", "clang++-20", "clang++"})
    if (std::system(fmt::format("{} --version > /dev/null 2>&1", name).c_str()) == 0) return name;
  return {};
}

std::vector<std::string> kernel_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".hip") files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  return files;
}

struct TemporaryFolder {
  TemporaryFolder() : path(std::filesystem::temp_directory_path() / fmt::format("kiln_lint_{}", std::random_device{}())) {
    std::filesystem::create_directories(path);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

// Compiles every file for both architectures, the two at once.
void compile_all(const std::filesystem::path& to) {
  const std::string compiler = clang();
  for (const std::string& file : kernel_files()) {
    std::string command;
    for (const char* arch : {"gfx942", "gfx950"})
      command += fmt::format("{} -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -O3 -gline-tables-only "
                             "--offload-arch={} {}{} -o {}/{}.{} & ",
                             compiler, arch, folder, file, to.string(), file, arch);
    REQUIRE(std::system((command + "wait").c_str()) == 0);
  }
}

std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) text += to_text(f).substr(0, to_text(f).find("  why:"));
  return text;
}

void check_kernel(const CodeObject& object, const std::string& name, const Planted& planted) {
  CAPTURE(name);
  const KernelAnalysis analysis = analyse(object, object.kernel(name));
  const std::vector<Finding> findings = lint(analysis);
  std::set<std::string> found;
  for (const Finding& f : findings) found.insert(f.rule);
  CHECK_MESSAGE(found == planted.rules, text_of(findings));
  CHECK_FALSE(analysis.lines.empty());
  for (const auto& [rule, line] : planted.lines)
    CHECK_MESSAGE(
        std::any_of(findings.begin(), findings.end(), [&, id = rule, at = line](const Finding& f) { return f.rule == id && f.line == at; }),
        fmt::format("{} names no line {}:\n{}", rule, line, text_of(findings)));
}

} // namespace

TEST_CASE("planted in compiled kernels, found there and nowhere else") {
  if (clang().empty()) {
    MESSAGE("no clang on the PATH: not tested");
    return;
  }
  const TemporaryFolder objects;
  compile_all(objects.path);
  std::set<std::string> covered;
  std::size_t kernels = 0;
  for (const std::string& file : kernel_files())
    for (const std::string arch : {"gfx942", "gfx950"}) {
      CAPTURE(file);
      CAPTURE(arch);
      const CodeObject object = load_code_object_file(fmt::format("{}/{}.{}", objects.path.string(), file, arch));
      const auto planted = planted_in(file, arch);
      CHECK(planted.size() == object.kernels().size());
      for (const auto& [name, what] : planted) {
        check_kernel(object, name, what);
        covered.insert(what.rules.begin(), what.rules.end());
        ++kernels;
      }
    }
  CHECK(kernels >= 60); // 30 of each architecture
  // Clang leaves no defects of data flow or bounds (planted_test.cpp), and no wait that a later one in the same block could replace:
  // rules_test.cpp has those, and those of faulty chips and compilers.
  for (const Rule& rule : all_rules())
    if (rule.on && rule.id != "PIN001" && rule.id != "SPL003" && rule.id != "CF005" && rule.id != "WAIT003" &&
        !rule.id.starts_with("DAT") && !rule.id.starts_with("BND") && !rule.id.starts_with("ERR") && !rule.id.starts_with("CMP"))
      CHECK_MESSAGE(covered.contains(std::string(rule.id)), rule.id);
}

} // namespace lint_kernels_test

// Running clang, and editing what it wrote.
#include "tests/exec/clang_kernels.h"
#include "isa_checks/decode/assembler.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <random>
#include <sstream>

namespace kiln::exec::testing {
namespace {

// Says where the lines of a function begin and end.
struct Span {
  std::size_t begin, end;
};
Span function(const std::string& assembly, const std::string& kernel) {
  const std::size_t begin = assembly.find("\n" + kernel + ":");
  REQUIRE(begin != std::string::npos);
  return {begin + 1, assembly.find(".section", begin)};
}

} // namespace

std::optional<std::string> assembly_of(const std::string& name, const std::string& arch, const std::string& flags) {
  const std::string source = fmt::format("{}/tests/exec/kernels/{}.hip", KILN_SOURCE_DIR, name);
  const auto file = std::filesystem::temp_directory_path() / fmt::format("kiln_exec_{}_{}_{}.s", name, arch, std::random_device{}());
  for (const char* clang : {"clang-21", "clang-22", "clang-20", "clang"}) {
    if (std::system(fmt::format("{} --version > /dev/null 2>&1", clang).c_str()) != 0) continue;
    const std::string command =
        fmt::format("{} -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib --offload-arch={} -O3 -S {} {} -o {}",
                    clang, arch, flags, source, file.string());
    REQUIRE(std::system(command.c_str()) == 0);
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    std::filesystem::remove(file);
    return text.str();
  }
  MESSAGE("no clang on the PATH: kernels not tested");
  return std::nullopt;
}

isa::CodeObject object_of(const std::string& assembly, const std::string& arch) {
  return isa::load_code_object(isa::assemble(assembly, isa::target_facts(arch)), "clang's kernels");
}

std::string without_line(const std::string& assembly, const std::string& kernel, const std::string& part, int nth,
                         std::string replacement) {
  const Span span = function(assembly, kernel);
  std::size_t at = assembly.find(part, span.begin);
  for (; nth > 0 && at < span.end; --nth) at = assembly.find(part, at + 1);
  CAPTURE(kernel);
  CAPTURE(part);
  REQUIRE(at < span.end);
  const std::size_t begin = assembly.rfind('\n', at) + 1, end = assembly.find('\n', at);
  if (const std::size_t line = replacement.find('&'); line != std::string::npos)
    replacement.replace(line, 1, assembly.substr(begin, end - begin));
  return assembly.substr(0, begin) + replacement + assembly.substr(end);
}

int lines_with(const std::string& assembly, const std::string& kernel, const std::string& part) {
  const Span span = function(assembly, kernel);
  int n = 0;
  for (std::size_t at = assembly.find(part, span.begin); at < span.end; at = assembly.find(part, at + 1)) ++n;
  return n;
}

} // namespace kiln::exec::testing

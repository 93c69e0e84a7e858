// KernelSource: launch arithmetic, and one file out of many headers.
#include "gen/emit/kernel_source.h"
#include "gen/emit/templates.h"
#include "gen/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace kiln {
namespace {

std::string_view header_text(std::string_view name) {
  for (const TemplateHeader& header : template_headers())
    if (header.name == name) return header.text;
  throw InternalError(fmt::format("no device header '{}'", name));
}

void inline_headers(std::string_view text, std::set<std::string, std::less<>>& done, std::string& out) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (constexpr std::string_view include = "#include \""; line.starts_with(include)) {
      const std::string_view name = line.substr(include.size(), line.rfind('"') - include.size());
      if (done.emplace(name).second) {
        out += fmt::format("// ---- {}\n", name);
        inline_headers(header_text(name), done, out);
      }
    } else if (!line.starts_with("#pragma once")) {
      out += line;
    }
  }
}

} // namespace

std::string_view to_string(ArgumentKind kind) {
  constexpr std::string_view names[] = {"input", "output", "in_place", "scalar", "size", "stride", "workspace"}; // in the enum's order
  return names[static_cast<std::size_t>(kind)];
}

std::uint64_t Launch::blocks(const std::function<std::int64_t(const std::string& dim)>& size_of) const {
  auto count = static_cast<std::uint64_t>(units);
  for (const Dim& dim : dims) count *= static_cast<std::uint64_t>(dim.is_dynamic() ? size_of(dim.name()) : dim.size());
  const auto each = static_cast<std::uint64_t>(units_per_block);
  std::uint64_t blocks = (count + each - 1) / each * static_cast<std::uint64_t>(blocks_per_unit);
  for (const Launch& launch : behind) blocks += launch.blocks(size_of);
  return blocks;
}

int Launch::workgroup_threads() const {
  int most = threads;
  for (const Launch& launch : behind) most = std::max(most, launch.threads);
  return most;
}

std::string self_contained(const KernelSource& source) {
  std::string out =
      fmt::format("// One file. As Kiln compiles it, by the clang of LLVM 20 or newer or of ROCm:\n"
                  "//   clang++ -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib --offload-arch={1} -std=c++20 -O3 "
                  "-ffp-contract=fast -fno-slp-vectorize {0}.{1}.hip -o {0}.{1}.co\n",
                  source.name, source.arch);
  std::set<std::string, std::less<>> done;
  inline_headers(source.text, done, out);
  return out;
}

std::string with_line_directives(const KernelSource& source) {
  constexpr std::string_view include = "#include ";
  const auto lines = [](std::string_view text) { return std::ranges::count(text, '\n'); };
  const auto headers =
      lines(self_contained(source)) - lines(source.text); // the lines that one file has more, all of them before the kernel
  const std::string as_one_file = fmt::format("{}.{}.hip", source.name, source.arch);
  std::string out;
  auto next = source.spec_lines.begin();
  std::string_view rest = source.text;
  for (int line = 1; !rest.empty(); ++line) {
    const std::string_view text = rest.substr(0, std::min(rest.find('\n'), rest.size() - 1) + 1);
    rest.remove_prefix(text.size());
    const bool says_spec = next != source.spec_lines.end() && next->text_line == line;
    if (says_spec) out += fmt::format("#line {} \"{}.{}.kiln\"\n", next->spec_line, source.name, source.arch);
    const bool last_include = text.starts_with(include) && !rest.starts_with(include);
    if (text.starts_with(include)) out += "#define KILN_LINES_OF_SPEC // see platform.h\n";
    out += text;
    if (last_include) out += "#undef KILN_LAMBDA\n#define KILN_LAMBDA __attribute__((always_inline))\n"; // with lines here
    while (next != source.spec_lines.end() && next->text_line == line) ++next;
    if (says_spec || last_include) out += fmt::format("#line {} \"{}\"\n", line + 1 + headers, as_one_file);
  }
  return out;
}

} // namespace kiln

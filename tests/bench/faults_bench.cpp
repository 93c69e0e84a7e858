// Known faults of compilers, looked for in what compilers make of tests/compile/faults: each source says what shows its fault, a rule of
// isa_lint or a wrong word on the CPU model. docs/errata.md has the table, of which columns of compilers out of reach stay as they are.
//
//   ./dev bench faults [-- --write] [--clang PATH]...
//
// Takes hipRTC and every clang of the PATH, and those that --clang names. --write writes the table; without it the exit code is 1 where
// a compiler does not do what the table says. The short form takes hipRTC alone.
#include "isa_checks/exec/run/execute.h"
#include "isa_checks/verdict/lint.h"
#include "runtime/compile/hiprtc.h"
#include "tests/bench/arguments.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using kiln::isa::Bytes;

std::string contents(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// A source, with what its first comments say.
struct Fault {
  fs::path file;
  std::string text, name, reported, arch, shown_by;
  std::vector<std::uint32_t> x; // words of the argument x
};

std::string said(const std::string& text, const std::string& key) {
  const std::string begin = "// " + key + ": ";
  const std::size_t at = text.find(begin);
  return at == std::string::npos ? "" : text.substr(at + begin.size(), text.find('\n', at) - at - begin.size());
}

std::vector<Fault> all_faults() {
  std::vector<Fault> faults;
  for (const fs::directory_entry& entry : fs::directory_iterator(KILN_SOURCE_DIR "/tests/compile/faults")) {
    const std::string text = contents(entry.path());
    Fault fault{entry.path(), text, said(text, "fault"), said(text, "reported"), said(text, "arch"), said(text, "shown by"), {}};
    if (fault.name.empty() || fault.arch.empty() || fault.shown_by.empty())
      throw std::runtime_error(entry.path().string() + ": it lacks one of the comments fault, arch and shown by");
    std::istringstream words(said(text, "x"));
    for (std::string word; words >> word;) fault.x.push_back(static_cast<std::uint32_t>(std::stoul(word, nullptr, 0)));
    faults.push_back(std::move(fault));
  }
  std::ranges::sort(faults, {}, &Fault::file);
  return faults;
}

struct Compiler {
  std::string kind;                                          // "hipRTC"
  std::function<std::optional<Bytes>(const Fault&)> compile; // nothing: it does not compile
};

Compiler hiprtc() {
  return {"hipRTC", [library = std::make_shared<kiln::Hiprtc>()](const Fault& fault) -> std::optional<Bytes> {
            const kiln::CompilerOutput made = library->compile({.file_name = fault.file.filename().string(),
                                                                .text = fault.text,
                                                                .headers = {kiln::replaced_builtin_header()},
                                                                .arch = fault.arch,
                                                                .options = {"-O3", "-std=c++20", "-nogpulib"}});
            return made.ok ? std::optional(Bytes(made.code_object.begin(), made.code_object.end())) : std::nullopt;
          }};
}

Compiler clang(const std::string& path) {
  return {"clang", [path](const Fault& fault) -> std::optional<Bytes> {
            const fs::path object = fs::temp_directory_path() / fmt::format("kiln_fault_{}.co", getpid());
            const std::string command =
                fmt::format("'{}' -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -std=c++20 "
                            "--offload-arch={} -O3 '{}' -o '{}' > /dev/null 2>&1",
                            path, fault.arch, fault.file.string(), object.string());
            if (std::system(command.c_str()) != 0) return std::nullopt;
            const std::string bytes = contents(object);
            fs::remove(object);
            return Bytes(bytes.begin(), bytes.end());
          }};
}

bool runs(const std::string& path) { return std::system(fmt::format("'{}' --version > /dev/null 2>&1", path).c_str()) == 0; }

// "21.1.8", as the code object says.
std::string version_of(const Bytes& object) {
  static constexpr std::string_view begin = "clang version ";
  const auto at = std::search(object.begin(), object.end(), begin.begin(), begin.end());
  if (at == object.end()) return "";
  const auto first = at + static_cast<std::ptrdiff_t>(begin.size());
  return {first, std::find_if(first, object.end(), [](std::uint8_t c) { return c <= ' '; })};
}

std::uint32_t first_word_of_y(const kiln::isa::CodeObject& object, const Fault& fault) {
  kiln::exec::Memory memory;
  const std::uint64_t x = memory.allocate("x", fault.x.size() * 4), y = memory.allocate("y", 256);
  std::memcpy(memory.bytes(x).data(), fault.x.data(), fault.x.size() * 4);
  const std::uint64_t arguments[] = {x, y};
  kiln::exec::execute(object, "fault", {}, std::as_bytes(std::span(arguments)), memory);
  std::uint32_t word = 0;
  std::memcpy(&word, memory.bytes(y).data(), sizeof word);
  return word;
}

bool shows(const Bytes& bytes, const Fault& fault) {
  const kiln::isa::CodeObject object = kiln::isa::load_code_object(bytes, fault.name);
  static constexpr std::string_view value = "y[0] is not ";
  if (fault.shown_by.starts_with(value))
    return first_word_of_y(object, fault) != static_cast<std::uint32_t>(std::stoul(fault.shown_by.substr(value.size()), nullptr, 0));
  const std::size_t space = fault.shown_by.find(' ');
  const auto severity = kiln::isa::severity_of(fault.shown_by.substr(space + 1));
  return std::ranges::any_of(
      kiln::isa::lint(kiln::isa::analyse(object, object.kernel("fault")), {.only = {fault.shown_by.substr(0, space)}}),
      [&](const kiln::isa::Finding& f) { return f.severity == severity; });
}

// The table: by compiler, in the order of its columns, the cells by fault.
struct Table {
  std::vector<std::string> compilers;
  std::map<std::string, std::map<std::string, std::string>> cells;
};
const std::string table_begin = "<!-- table of tests/bench/faults_bench.cpp -->\n", table_end = "<!-- end -->";

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> parts;
  for (std::size_t at = 2; at < line.size();) {
    const std::size_t end = line.find(" |", at);
    if (end == std::string::npos) break;
    parts.push_back(line.substr(at, end - at));
    at = end + 3;
  }
  return parts;
}

Table read_table(const std::string& page) {
  Table table;
  const std::size_t begin = page.find(table_begin), end = page.find(table_end);
  if (begin == std::string::npos || end == std::string::npos) throw std::runtime_error("docs/errata.md has no place for the table");
  std::istringstream lines(page.substr(begin + table_begin.size(), end - begin - table_begin.size()));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> head = split(line);
  if (head.size() > 2) table.compilers.assign(head.begin() + 2, head.end());
  while (std::getline(lines, line)) {
    const std::vector<std::string> row = split(line);
    for (std::size_t i = 2; i < row.size() && i < head.size(); ++i) table.cells[head[i]][row[0]] = row[i];
  }
  return table;
}

std::string written(const Table& table, const std::vector<Fault>& faults) {
  std::string text = "| fault | shown by |", rule = "|---|---|";
  for (const std::string& compiler : table.compilers) text += fmt::format(" {} |", compiler), rule += "---|";
  text += "\n" + rule + "\n";
  for (const Fault& fault : faults) {
    text += fmt::format("| {} | {} |", fault.name, fault.shown_by);
    for (const std::string& compiler : table.compilers) {
      const auto& cells = table.cells.at(compiler);
      const auto cell = cells.find(fault.name);
      text += fmt::format(" {} |", cell == cells.end() ? "not tried" : cell->second);
    }
    text += "\n";
  }
  return text;
}

// What one compiler does: its column's name, and the cells.
std::pair<std::string, std::map<std::string, std::string>> column_of(const Compiler& compiler, const std::vector<Fault>& faults) {
  std::string version;
  std::map<std::string, std::string> cells;
  for (const Fault& fault : faults) {
    const auto object = compiler.compile(fault);
    if (object && version.empty()) version = version_of(*object);
    cells[fault.name] = !object ? "does not compile" : shows(*object, fault) ? "shown" : "not shown";
  }
  return {compiler.kind + " " + (version.empty() ? "of unknown version" : version), cells};
}

std::vector<Compiler> compilers_in_reach(const std::vector<std::string>& named, bool short_form) {
  std::vector<Compiler> compilers{hiprtc()};
  if (short_form) return compilers;
  std::vector<std::string> paths = named;
  for (int version = 17; version <= 24; ++version) paths.push_back(fmt::format("clang-{}", version));
  for (const std::string& path : paths)
    if (runs(path)) compilers.push_back(clang(path));
  return compilers;
}

int run(const std::vector<std::string>& clangs, bool write, bool short_form) {
  const std::vector<Fault> faults = all_faults();
  const fs::path file = KILN_SOURCE_DIR "/docs/errata.md";
  const std::string page = contents(file);
  const Table before = read_table(page);
  Table table = before;
  for (const Compiler& compiler : compilers_in_reach(clangs, short_form)) {
    const auto [name, cells] = column_of(compiler, faults);
    if (!table.cells.contains(name)) table.compilers.push_back(name);
    table.cells[name] = cells;
  }
  std::ranges::sort(table.compilers);
  const std::string text = written(table, faults);
  fmt::print("{}", text);
  if (write) {
    const std::size_t begin = page.find(table_begin) + table_begin.size();
    std::ofstream(file) << page.substr(0, begin) + text + page.substr(page.find(table_end));
    return 0;
  }
  int wrong = 0;
  for (const std::string& name : before.compilers)
    for (const Fault& fault : faults) {
      const auto& cells = before.cells.at(name);
      const std::string was = cells.contains(fault.name) ? cells.at(fault.name) : "not tried", now = table.cells[name][fault.name];
      if (now.empty() || was == now) continue;
      fmt::print(stderr, "{}, {}: {}, and docs/errata.md says {}\n", name, fault.name, now, was);
      ++wrong;
    }
  return wrong > 0 ? 1 : 0;
}

} // namespace

int main(int argc, char** argv) {
  try {
    const bool short_form = kiln::take_short_form(argc, argv);
    bool write = false;
    std::vector<std::string> clangs;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--write") write = true;
      else if (word == "--clang" && i + 1 < argc) clangs.emplace_back(argv[++i]);
      else throw std::runtime_error("there is no option " + word);
    }
    return run(clangs, write, short_form);
  } catch (const std::exception& error) {
    fmt::print(stderr, "faults_bench: {}\n", error.what());
    return 2;
  }
}

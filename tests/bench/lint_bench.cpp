// isa_lint beside llvm-objdump -d on the code objects of a real library, with the same number of cores. Exit code 1: isa_lint
// took more than twice the time, ended with an error, or met code that it cannot decode.
//
//   ./dev bench lint -- LIBRARY [--arch gfx90a] [--every N] [--rounds 3] [--scratch FOLDER]
//
// LIBRARY is a shared library, bundle or folder with device code. Debian's libggml0-backend-hip (one library of 1.27 GB, 280
// bundles of ten architectures) and librocblas4 are good ones: `apt-get download libggml0-backend-hip`, `dpkg-deb -x *.deb
// FOLDER`.
// --every N takes each Nth code object only; --scratch is where they are extracted to (default: the temporary folder).
#include "isa_checks/error.h"
#include "isa_checks/input/inputs.h"
#include "isa_checks/input/mapped_file.h"
#include "isa_checks/parallel.h"
#include "tests/bench/arguments.h"
#include "tests/bench/own_objects.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <sys/resource.h>

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string library, arch = "gfx90a";
  fs::path scratch = fs::temp_directory_path();
  std::size_t every = 1;
  int rounds = 3;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      options.library = word;
      continue;
    }
    if (i + 1 == argc) throw std::runtime_error(word + " wants a value");
    const std::string value = argv[++i];
    if (word == "--arch") options.arch = value;
    else if (word == "--every" || word == "--rounds") {
      if (!(word == "--every" ? kiln::read_whole(value, options.every) : kiln::read_whole(value, options.rounds)))
        throw std::runtime_error(word + " wants a number from 1, not '" + value + "'");
    } else if (word == "--scratch") options.scratch = value;
    else throw std::runtime_error("there is no option " + word);
  }
  if (options.every == 0 || options.rounds < 1) throw std::runtime_error("--every and --rounds are at least 1");
  return options;
}

// A folder that is gone at the end.
struct Extracted {
  fs::path folder;
  std::size_t objects = 0;
  std::uint64_t bytes = 0, largest = 0;
  explicit Extracted(const Options& options) : folder(options.scratch / "kiln-lint-bench") {
    fs::remove_all(folder);
    fs::create_directories(folder);
    std::size_t seen = 0;
    const kiln::isa::InputVisitor visitor{
        .object =
            [&](const kiln::isa::SharedBytes& object, const std::string&) {
              if (seen++ % options.every == 0) keep(*object);
            },
        .skipped = [](const std::string&) {},
        .failed = [](const kiln::isa::Error& error) { fmt::print(stderr, "not read: {}\n", error.what()); }};
    for (const std::string& file : kiln::isa::expand_paths({options.library})) {
      const auto mapped = std::make_shared<kiln::isa::MappedFile>(file);
      kiln::isa::read_input(kiln::isa::SharedBytes(mapped), file, {.archs = {options.arch}, .assembly_arch = {}}, visitor,
                            [&](std::uint64_t done) { mapped->done_until(done); });
    }
  }
  ~Extracted() { fs::remove_all(folder); }
  Extracted(const Extracted&) = delete;
  Extracted& operator=(const Extracted&) = delete;

private:
  void keep(std::span<const std::uint8_t> object) {
    std::ofstream(folder / fmt::format("{:05}.co", objects++), std::ios::binary)
        .write(reinterpret_cast<const char*>(object.data()), static_cast<std::streamsize>(object.size()));
    bytes += object.size();
    largest = std::max<std::uint64_t>(largest, object.size());
  }
};

struct Time {
  double wall = 0, cpu = 0; // seconds
};

Time timed(const std::string& command, int accepted) {
  const auto cpu = [] {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  };
  const double before = cpu();
  const auto start = std::chrono::steady_clock::now();
  const int status = std::system(command.c_str());
  if (status != 0 && status != accepted << 8) throw std::runtime_error(fmt::format("status {:#x} of {}", status, command));
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), cpu() - before};
}

// Streams the library itself. Returns the words that cannot be decoded.
std::uint64_t whole_library(const Options& options) {
  const std::string report = (options.scratch / "kiln-lint-bench.json").string();
  const Time time = timed(
      fmt::format("{} {} --no-settings --arch {} --format json -o {} 2>/dev/null", KILN_ISA_LINT, options.library, options.arch, report),
      1);
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto summary = nlohmann::json::parse(std::ifstream(report))["summary"];
  fs::remove(report);
  const auto undecodable = summary["undecodable"].get<std::uint64_t>();
  fmt::print("whole library, as JSON: {:.1f} s, {:.1f} of processor time; {} kernels in {} code objects, {} findings, {} words "
             "that cannot be decoded; at most {} MiB of memory, what is mapped included\n",
             time.wall, time.cpu, summary["kernels"].get<std::uint64_t>(), summary["objects"].get<std::uint64_t>(),
             summary["findings"].get<std::uint64_t>(), undecodable, usage.ru_maxrss >> 10);
  return undecodable;
}

int run(const Options& options, bool judge_time = true) {
  const Extracted extracted(options);
  const std::size_t cores = kiln::processors();
  fmt::print("{} code objects for {}, {:.1f} MB, the largest {:.1f} MB; {} cores\n", extracted.objects, options.arch,
             static_cast<double>(extracted.bytes) / 1e6, static_cast<double>(extracted.largest) / 1e6, cores);
  if (extracted.objects == 0) return 1;
  const std::string folder = extracted.folder.string();
  const std::string objdump =
      fmt::format("find {} -name '*.co' | xargs -P {} -n 1 sh -c 'llvm-objdump -d \"$0\" >/dev/null'", folder, cores);
  const std::string lint = fmt::format("{} {} --no-settings -j {} --format text -o /dev/null", KILN_ISA_LINT, folder, cores);
  std::vector<double> wall, cpu;
  fmt::print("{:>6} {:>24} {:>24} {:>8} {:>8}\n", "round", "llvm-objdump -d", "isa_lint", "wall", "cpu");
  for (int round = 0; round < options.rounds; ++round) { // taking turns, because the machine may have other work
    const Time a = timed(objdump, 0), b = timed(lint, 1);
    wall.push_back(b.wall / a.wall);
    cpu.push_back(b.cpu / a.cpu);
    fmt::print("{:>6} {:>10.2f} s {:>8.2f} cpu {:>10.2f} s {:>8.2f} cpu {:>7.2f}x {:>7.2f}x\n", round, a.wall, a.cpu, b.wall, b.cpu,
               wall.back(), cpu.back());
  }
  std::ranges::sort(wall);
  std::ranges::sort(cpu);
  const std::uint64_t undecodable = options.every == 1 ? whole_library(options) : 0; // a sample is for quick looks
  // For both, the processor time is what a machine with other work measures best.
  const double middle = cpu[cpu.size() / 2];
  const bool met = (middle <= 2 || !judge_time) && undecodable == 0;
  fmt::print("median ratio: {:.2f} of wall time, {:.2f} of processor time; bound 2: {}\n", wall[wall.size() / 2], middle,
             met ? "met" : "MISSED");
  return met ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) try {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (kiln::take_short_form(argc, argv)) {
    const kiln::OwnObjects own("gfx942");
    return run({.library = own.folder(), .arch = "gfx942", .scratch = own.folder(), .rounds = 1}, false);
  }
  const Options options = parse(argc, argv);
  if (options.library.empty()) {
    fmt::print("kiln_lint_bench: no library given; the head of tests/bench/lint_bench.cpp says how to get one\n");
    return 0;
  }
  return run(options);
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}

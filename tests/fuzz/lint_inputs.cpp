// Damaged inputs of every kind through isa_lint: a result or an error and its exit code, never a crash, a hang or more than 256 MiB
// of memory. KILN_FUZZ_FIRST and KILN_FUZZ_COUNT choose the seeds; the normal run takes a small slice. A failing input is left in the
// folder that KILN_FUZZ_KEEP names.
#include "isa_checks/object/code_object.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/seeds.h"
#include "tests/isa/linked.h"
#include "tests/lint/files.h"
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace lint_inputs_tests {
using namespace kiln::isa;
using namespace kiln::isa::testing;
using kiln::fuzz::Mutator;

namespace {

constexpr std::string_view body = R"(
  s_load_dwordx4 s[0:3], s[0:1], 0x0
  v_mov_b32_e32 v4, 0
  s_waitcnt lgkmcnt(0)
loop:
  global_load_dwordx4 v[0:3], v4, s[0:1]
  ds_read_b128 v[8:11], v4 offset:16
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_pk_fma_f32 v[0:1], v[0:1], v[2:3], v[8:9]
  v_mfma_f32_4x4x4f16 a[0:3], v[0:1], v[2:3], a[0:3]
  ds_write_b64 v4, v[0:1]
  s_barrier
  v_add_u32_e32 v4, 0x1000, v4
  s_sub_u32 s3, s3, 1
  s_cbranch_scc0 loop
  v_cmp_lt_u32_e32 vcc, v4, v0
  s_and_saveexec_b64 s[4:5], vcc
  s_cbranch_execz done
  global_store_dword v4, v0, s[0:1]
done:
)";

// Directives that ask for memory, files, repetition, other targets.
constexpr std::array<std::string_view, 24> words{".fill 100000, 8, 0",
                                                 ".rept 1000",
                                                 ".endr",
                                                 ".irp x, 1, 2",
                                                 ".macro m",
                                                 ".endm",
                                                 ".org 1000000",
                                                 ".p2align 31",
                                                 ".zero 4294967295",
                                                 ".include \"k.s\"",
                                                 ".incbin \"k.s\"",
                                                 ".set s, s + 1",
                                                 ".if 1",
                                                 ".endif",
                                                 ".section .text",
                                                 "-1",
                                                 "0xffffffffffffffff",
                                                 "v[0:255]",
                                                 "s[100:107]",
                                                 "exec",
                                                 "lit(0)",
                                                 "max(s, t)",
                                                 ".amdhsa_next_free_vgpr 513",
                                                 ".loc 1 1 1"};

struct Corpus {
  std::vector<Bytes> objects; // relocatable and linked, of each architecture
  std::string text;
};

Corpus make_corpus() {
  Corpus corpus;
  for (const std::string_view arch : {"gfx90a", "gfx942", "gfx950"}) {
    corpus.objects.push_back(plain_object(arch, "k", body));
    corpus.objects.push_back(link(corpus.objects.back()));
  }
  corpus.text = plain_text("gfx942", "k", body);
  return corpus;
}

// A part of an object that deserves attention: its note, its code, its headers, anything.
std::pair<std::size_t, std::size_t> part_of(const Bytes& object, Mutator& mutate) {
  const ElfImage image = parse_elf(object, "corpus");
  const std::size_t kind = mutate.below(5);
  const auto section = [&](const auto& wanted) -> std::pair<std::size_t, std::size_t> {
    for (const ElfSection& s : image.sections)
      if (wanted(s)) {
        const auto at = static_cast<std::size_t>(s.bytes.data() - image.bytes->data());
        return {at, at + s.bytes.size()};
      }
    return {0, object.size()};
  };
  if (kind == 0) return section([](const ElfSection& s) { return s.type == 7; }); // SHT_NOTE
  if (kind == 1) return section([](const ElfSection& s) { return s.name == ".text"; });
  if (kind == 2) return {0, 64};
  if (kind == 3) return {object.size() - std::min<std::size_t>(object.size(), 64 * image.sections.size()), object.size()};
  return {0, object.size()};
}

Bytes damaged_object(const Corpus& corpus, Mutator& mutate) {
  Bytes bytes = corpus.objects[mutate.below(corpus.objects.size())];
  const auto [begin, end] = part_of(bytes, mutate);
  if (mutate.below(8) == 0) mutate.reshape(bytes);
  else mutate.damage(bytes, begin, end);
  return bytes;
}

struct Input {
  std::string name, kind;
  Bytes bytes;
};

Input make_input(const Corpus& corpus, std::uint64_t seed) {
  Mutator mutate(seed);
  const std::size_t kind = mutate.below(16);
  const auto any_object = [&] {
    return mutate.below(2) == 0 ? corpus.objects[mutate.below(corpus.objects.size())] : damaged_object(corpus, mutate);
  };
  const auto plain = [&] {
    const std::string id = "hipv4-amdgcn-amd-amdhsa--";
    return bundle({{"host-x86_64-unknown-linux-gnu-", {}},
                   {id + "gfx942", any_object()},
                   {id + "gfx1100", Bytes(100, 1)},
                   {id + "gfx90a:xnack+", any_object()}});
  };
  const auto packed = [&](const Bytes& content) {
    return compressed(content, 1 + static_cast<int>(mutate.below(3)), mutate.below(2) == 0 ? Compression::zlib : Compression::zstd);
  };
  if (kind < 7) return {"in.co", "object", damaged_object(corpus, mutate)};
  if (kind < 9) {
    Bytes bytes = plain();
    mutate.damage(bytes, 0, mutate.below(2) == 0 ? 256 : bytes.size());
    return {"in.co", "bundle", mutate.below(8) == 0 ? in_a_row({bytes, plain()}) : bytes};
  }
  if (kind < 11) { // damaged before it was packed
    Bytes bytes = plain();
    mutate.damage(bytes, 0, 256);
    return {"in.co", "packed damage", packed(bytes)};
  }
  if (kind < 13) {
    Bytes bytes = packed(plain());
    if (mutate.below(4) == 0) mutate.reshape(bytes);
    else mutate.damage(bytes, 0, mutate.below(2) == 0 ? 40 : bytes.size());
    return {"in.co", "damaged packet", bytes};
  }
  if (kind < 15) {
    Bytes bytes =
        host_file({{mutate.below(2) == 0 ? ".hip_fatbin" : ".rodata", in_a_row({plain(), packed(plain())})}}, true, mutate.below(2) == 0);
    const std::size_t tail = bytes.size() - std::min<std::size_t>(bytes.size(), 512); // the section headers
    mutate.damage(bytes, mutate.below(2) == 0 ? 0 : tail, mutate.below(2) == 0 ? bytes.size() : 64 + tail);
    return {"in.so", "host file", bytes};
  }
  const std::string text = mutate.garble(corpus.text, words);
  return {"in.s", "assembly", Bytes(text.begin(), text.end())};
}

// Seconds of processor time, of this process and its children that have ended: a busy machine makes nothing hang.
double processor_seconds() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& t : {usage.ru_utime, usage.ru_stime}) sum += static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  }
  return sum;
}

// What is wrong with a run that took so many seconds, or "".
std::string verdict(const Result& r, double took) {
  if (r.exit_code < 0 || r.exit_code > 2) return fmt::format("exit code {}", r.exit_code);
  if (r.exit_code == 2 && !r.err.starts_with("error: ") && r.err.find("\nerror: ") == r.err.npos)
    return "exit code 2 without an error: " + r.err;
  if (r.err.find("error: internal") != std::string::npos) return r.err;
  if (took > 30) return fmt::format("took {:.0f} s", took); // the assembler's own limit is 20
  return {};
}

} // namespace

// From here on this process may grow by so much; what asks for more fails as an internal error, which verdict() finds.
void bound_memory([[maybe_unused]] rlim_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) // which multiplies memory
  unsigned long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
#endif
}

TEST_CASE("damaged inputs") {
  const std::uint64_t first = kiln::testing::number_from("KILN_FUZZ_FIRST", 1), count = kiln::testing::number_from("KILN_FUZZ_COUNT", 1500);
  const char* const keep = std::getenv("KILN_FUZZ_KEEP");
  MESSAGE("seeds ", first, " to ", first + count - 1);
  const Corpus corpus = make_corpus();
  bound_memory(rlim_t{256} << 20);
  constexpr std::array<const char*, 5> formats{"text", "json", "sarif", "github", "html"};
  const Folder folder;
  std::array<std::uint64_t, 3> codes{};
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Input input = make_input(corpus, seed);
    const std::string file = folder.write(input.name, input.bytes);
    if (keep) Folder::write_to(keep, "last-" + input.name, input.bytes); // what a crash would leave
    const double start = processor_seconds();
    const Result result =
        isa_lint({file, "-j", "1", "--no-settings", "--rule", "all", "--severity", "info", "--format", formats[seed % formats.size()]});
    const std::string wrong = verdict(result, processor_seconds() - start);
    CAPTURE(seed);
    CAPTURE(input.kind);
    CHECK(wrong == "");
    if (result.exit_code >= 0 && result.exit_code <= 2) ++codes[static_cast<std::size_t>(result.exit_code)];
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  MESSAGE(fmt::format("{} inputs in {:.1f} s, {:.0f} a second; {} clean, {} with findings, {} refused; {} MiB", count, seconds,
                      static_cast<double>(count) / seconds, codes[0], codes[1], codes[2], usage.ru_maxrss >> 10));
  if (count >= 500) { // the mutations reach behind the first checks, and do damage
    CHECK(codes[1] > count / 20);
    CHECK(codes[2] > count / 20);
  }
}

} // namespace lint_inputs_tests

// Cache entries that somebody else wrote: meta.json, descriptor, note and ELF changed at random, every checksum made right again,
// then loaded and bound on an emulated device. A miss or an error with a name, never a crash. KILN_FUZZ_FIRST and KILN_FUZZ_COUNT
// choose the seeds; the normal run takes a small slice. Meant for the asan preset:
//   KILN_FUZZ_COUNT=1000000 ./dev --preset asan exec kiln_fuzz_tests -tc='entries that*'
#include "gen/error.h"
#include "gen/spec/math.h"
#include "isa_checks/error.h"
#include "runtime/build/build_kernel.h"
#include "runtime/cache/entry.h"
#include "runtime/digest.h"
#include "runtime/launch/device.h"
#include "runtime/launch/kernel.h"
#include "tests/fuzz/seeds.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <random>

namespace entries_tests {
using namespace kiln;

namespace {

using Random = std::mt19937_64;

// Strided and in-place tensors, a scalar and a run-time size; its descriptor and note are real.
KernelSpec subject_spec() {
  const Dim rows = dynamic("rows", 1, 64);
  const Expr x = input("x", f16, {rows, 256}, Layout::strided), residual = input("residual", f16, {rows, 256});
  const Expr h = cast(f16, residual + x * scalar("alpha"));
  return KernelSpec("subject").output("h", f16, h, {.in_place_of = "residual"}).output("y", f16, h * row_mean(h));
}

// A product whose sums are split over workgroups, so that it has a workspace.
KernelSpec product_spec() {
  const Expr a = input("a", f16, {dynamic("m", 1, 16), 4096}), b = input("b", f16, {256, 4096});
  return KernelSpec("product").output("c", f16, matmul_nt(a, b));
}

struct Subject {
  KernelRequest request;
  EntryFiles files;
  CacheKey key;
  explicit Subject(const KernelSpec& spec) {
    CompileOptions options = own_process_options(process_environment());
    const Target gpu = target("gfx942");
    request = kernel_request(spec, gpu, {}, options);
    files = make_entry(request, build_kernel(spec, gpu, options, {}));
    key = read_entry(files.meta, files.object, nullptr).key;
  }
};

// Whoever changes an entry makes its checksums too.
EntryFiles sealed(EntryFiles files, const EntryFiles& before) {
  const auto replace = [&files](const std::string& from, const std::string& to) {
    if (const std::size_t at = files.meta.find(from); at != std::string::npos) files.meta.replace(at, from.size(), to);
  };
  replace(sha256(before.object), sha256(files.object));
  const std::string body = files.meta.substr(0, files.meta.rfind(",\n \"meta_sha256\""));
  files.meta = body + ",\n \"meta_sha256\": \"" + sha256(body) + "\"\n}\n";
  return files;
}

std::int64_t interesting(Random& random) {
  constexpr std::int64_t numbers[] = {0,          -1,         1,          -8,        3,         7,         8,          64,  127,
                                      256,        1024,       1025,       4088,      4096,      65536,     2147483647, -64, 2048,
                                      2147483648, 4294967295, 4294967296, 1ll << 40, 1ll << 62, INT64_MAX, INT64_MIN};
  return random() % 4 == 0 ? static_cast<std::int64_t>(random()) : numbers[random() % std::size(numbers)];
}

// A number, a word or a byte before "schedule": what a load reads. Not the key's fields, since any change there is a miss.
void change_meta(std::string& meta, Random& random) {
  const std::size_t from = meta.find("\"arch\": \"gfx", meta.find("\"request\"") + 200), end = meta.find(",\n \"schedule\"");
  if (from >= end || end == std::string::npos) return; // an earlier change of this input took them away
  const std::size_t at = from + random() % (end - from);
  const std::size_t number = meta.find_first_of("-0123456789", at);
  if (random() % 8 == 0 || number >= end) {
    meta[at] = static_cast<char>(random() % 3 == 0 ? "\"{}[],:-0e."[random() % 11] : random());
  } else if (random() % 6 == 0) { // words change places: kinds, types and names
    constexpr const char* words[] = {"\"input\"", "\"output\"", "\"in_place\"", "\"scalar\"", "\"size\"", "\"stride\"", "\"workspace\"",
                                     "\"f16\"",   "\"f32\"",    "\"i32\"",      "\"x\"",      "\"rows\"", "\"\"",       "null"};
    const std::size_t quote = meta.find(": \"", at), close = meta.find('"', quote + 3);
    if (quote < end && close < end) meta.replace(quote + 2, close - quote - 1, words[random() % std::size(words)]);
  } else {
    const std::size_t past = meta.find_first_not_of("-0123456789", number);
    meta.replace(number, past - number, std::to_string(interesting(random)));
  }
}

void change_object(std::string& object, Random& random) {
  // Mostly the note, the descriptor and the headers; they lie in the first and the last KB.
  const std::size_t near = std::min<std::size_t>(object.size(), 2048), place = random() % 3;
  const std::size_t at = place == 0 ? random() % near : place == 1 ? object.size() - 1 - random() % near : random() % object.size();
  object[at] = static_cast<char>(random() % 2 == 0 ? random() : object[at] ^ (1 << random() % 8));
  if (random() % 64 == 0) object.resize(random() % object.size() + 1);
}

struct Memory {
  Device device = Device::emulated("gfx942");
  DeviceMemory bytes = device.allocate(4u << 20, "all");
  DeviceTensor tensor(DType dtype, std::vector<std::int64_t> shape, std::size_t at) const {
    return bytes.tensor(dtype, std::move(shape), 0, at);
  }
  std::vector<Argument> arguments(bool product) const {
    if (product)
      return {{"a", tensor(f16, {4, 4096}, 0)}, {"b", tensor(f16, {256, 4096}, 1u << 20)}, {"c", tensor(f16, {4, 256}, 512u << 10)}};
    return {{"x", tensor(f16, {4, 256}, 0)},
            {"residual", tensor(f16, {4, 256}, 1u << 20)},
            {"y", tensor(f16, {4, 256}, 2u << 20)},
            {"alpha", 0.5}};
  }
};

} // namespace

TEST_CASE("entries that somebody else wrote are a miss or an error with a name") {
  const Subject subjects[] = {Subject(subject_spec()), Subject(product_spec())};
  const Memory memory;
  const std::uint64_t first = testing::number_from("KILN_FUZZ_FIRST", 0), count = testing::number_from("KILN_FUZZ_COUNT", 4000);
  std::size_t misses = 0, refused = 0, bound = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const std::size_t which = random() % 2;
    const Subject& subject = subjects[which];
    EntryFiles files = subject.files;
    for (std::uint64_t n = random() % 3 + 1; n > 0; --n)
      random() % 3 == 0 ? change_object(files.object, random) : change_meta(files.meta, random);
    files = sealed(std::move(files), subject.files);
    try {
      CachedKernel kernel = read_entry(files.meta, files.object, &subject.key);
      if (kernel.workspace_bytes > 64 << 20) continue; // memory that the host has, or not
      const LoadedKernel loaded = memory.device.load(Kernel(std::move(kernel), Origin::folder));
      const std::vector<Argument> arguments = memory.arguments(which == 1);
      const BoundKernel ready = loaded.bind(arguments);
      ++bound;
      CHECK(ready.threads() <= 1024);
    } catch (const CorruptEntry&) {
      ++misses;
    } catch (const Error&) {
      ++refused;
    } catch (const isa::Error&) {
      ++refused;
    }
  }
  MESSAGE(fmt::format("{} inputs: {} misses, {} refused by name, {} bound", count, misses, refused, bound));
  CHECK(misses > count / 10);
  CHECK(bound > 0); // what does no harm is taken: times, names of fields that a launch does not need
}

} // namespace entries_tests

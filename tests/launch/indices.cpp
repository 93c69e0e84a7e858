// Emulated devices find indices that name no row, or one twice, before the kernel runs; what is declared runs.
#include "tests/errors/expect.h"
#include "tests/launch/loaded.h"

using namespace kiln;
using kiln::test::compiled;

namespace {

const Dim tokens = dynamic("tokens"), slots = dynamic("slots");

KernelSpec cache_write(IndexOptions how) {
  const Expr cache = input("cache", f16, {slots, 64}), slot = input("slot", i64, {tokens, 1}), x = input("x", f16, {tokens, 64});
  return KernelSpec("cache_write").output("out", f16, scatter(cache, slot, x * 2, how), {.in_place_of = "cache"});
}

// Two tokens into a cache of three rows; the findings, or the cache.
struct Ran {
  std::vector<std::string> findings;
  Tensor cache;
};
Ran run(IndexOptions how, std::int64_t first, std::int64_t second) {
  const Device device = Device::emulated("gfx942");
  const LoadedKernel kernel = device.load(compiled(cache_write(how)));
  Tensor x(f16, {2, 64}), slot(i64, {2, 1}), rows(f16, {3, 64});
  for (int i = 0; i < 128; ++i) x.set(i, i < 64 ? 1 : 2);
  slot.set_bits(0, static_cast<std::uint64_t>(first));
  slot.set_bits(1, static_cast<std::uint64_t>(second));
  const DeviceMemory of_x = device.upload(x), of_slot = device.upload(slot), of_cache = device.upload(rows);
  const DeviceTensor cache = of_cache.tensor(f16, {3, 64});
  Ran ran{{}, rows};
  try {
    kernel.bind({{"x", of_x.tensor(f16, {2, 64})}, {"slot", of_slot.tensor(i64, {2, 1})}, {"cache", cache}}).launch();
  } catch (const ExecutionError& error) {
    ran.findings = error.findings;
  }
  ran.cache = device.download(cache);
  return ran;
}

} // namespace

TEST_CASE("emulated: indices within the rows are written") {
  const Ran ran = run({}, 2, -1);
  CHECK(ran.findings.empty());
  CHECK(ran.cache.at(2 * 64) == 2);
  CHECK(ran.cache.at(0) == 0);
}

TEST_CASE("emulated: an index beyond the rows is a finding with element and value, unless it is checked") {
  const Ran ran = run({}, 1, 70'000);
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings[0] == "index slot: element 1 is 70000, and cache has 3 rows");
  CHECK(ran.cache.at(64) == 0); // nothing ran
  const Ran checked = run({.checked = true}, 1, 70'000);
  CHECK(checked.findings.empty());
  CHECK(checked.cache.at(64) == 2);
}

TEST_CASE("emulated: two writers of one row are a finding, unless they are declared") {
  const Ran ran = run({}, 1, 1);
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings[0] == "index slot: elements 0 and 1 are both 1, a row of cache that is to be written once");
  const Ran declared = run({.duplicates = true}, 1, 1);
  CHECK(declared.findings.empty());
  CHECK((declared.cache.at(64) == 2 || declared.cache.at(64) == 4));
}

namespace {

// Two sequences whose state is doubled into two slots each.
std::vector<std::string> findings_of_state(std::int64_t first_from, std::int64_t second_from, std::int64_t second_to) {
  const Dim sequences = dynamic("sequences");
  const Expr state = input("state", f32, {slots, 64}), from = input("from", i64, {sequences, 1}),
             to = input("places", i64, {sequences, 2, 1});
  const Expr next = gather(state, from) * 2;
  const KernelSpec spec = KernelSpec("k").output("out", f32, scatter(state, to, stack({next, next * 2})), {.in_place_of = "state"});
  const Device device = Device::emulated("gfx942");
  const LoadedKernel kernel = device.load(compiled(spec));
  Tensor states(f32, {8, 64}), read(i64, {2, 1}), written(i64, {2, 2, 1});
  read.set_bits(0, static_cast<std::uint64_t>(first_from)), read.set_bits(1, static_cast<std::uint64_t>(second_from));
  for (int i = 0; i < 4; ++i) written.set_bits(i, static_cast<std::uint64_t>(i));
  written.set_bits(2, static_cast<std::uint64_t>(second_to));
  const DeviceMemory of_state = device.upload(states), of_read = device.upload(read), of_written = device.upload(written);
  try {
    kernel
        .bind({{"state", of_state.tensor(f32, {8, 64})},
               {"from", of_read.tensor(i64, {2, 1})},
               {"places", of_written.tensor(i64, {2, 2, 1})}})
        .launch();
  } catch (const ExecutionError& error) {
    return error.findings;
  }
  return {};
}

} // namespace

TEST_CASE("emulated: states that collide are findings") {
  CHECK(findings_of_state(1, 2, 2).empty()); // each reads one that it writes itself
  CHECK(findings_of_state(-1, 7, -1).empty());
  const auto twice = findings_of_state(1, 2, 0);
  REQUIRE(!twice.empty());
  CHECK(twice[0] == "index places: elements 0 and 2 are both 0, a row of state that is to be written once");
  const auto foreign = findings_of_state(3, 4, 2);
  REQUIRE(foreign.size() == 1);
  CHECK(foreign[0] ==
        "index from: element 0 of it and element 3 of places are both 3, a row of state that one part of the launch reads and "
        "another one writes");
}

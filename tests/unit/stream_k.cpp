// The partition of steps over workgroups and its inverse: every step has one workgroup, and both forms of the inverse find it.
#include "templates/attention_config.h"
#include "templates/stream_k_config.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <random>

using namespace kiln;

namespace {

// As the device has it, an ulp of its reciprocal off.
unsigned nearly(unsigned workgroups, unsigned steps, unsigned step) {
  const float reciprocal = 1 / static_cast<float>(steps) * 1.0000001F;
  return static_cast<unsigned>(static_cast<float>(step) * (static_cast<float>(workgroups) * reciprocal));
}

template <unsigned workgroups> bool holds(const StepRuns<workgroups, 0xffffffffull>& runs, unsigned group) {
  const unsigned first = runs.first_step(group), end = runs.first_step(group + 1), count = end - first;
  if (end < first || count < runs.steps / workgroups || count > (runs.steps - 1) / workgroups + 1) return false;
  for (const unsigned step : {first, end - 1})
    if (count > 0 && (runs.group_of(step) != group || runs.group_of(step, nearly(workgroups, runs.steps, step)) != group)) return false;
  return true;
}

template <unsigned workgroups> void check_runs(unsigned steps) {
  CAPTURE(workgroups);
  CAPTURE(steps);
  const StepRuns<workgroups, 0xffffffffull> runs{steps};
  CHECK(runs.first_step(0) == 0);
  CHECK(runs.first_step(workgroups) == steps);
  unsigned held = 0;
  while (held < workgroups && holds(runs, held)) ++held;
  CHECK(held == workgroups);
}

void check_active_runs(unsigned steps, unsigned active) {
  CAPTURE(steps);
  CAPTURE(active);
  const ActiveRuns runs{steps, active, static_cast<float>(steps) / static_cast<float>(active) * 1.0000001F};
  const auto holds = [&](unsigned group) {
    const unsigned first = runs.first_step(group), end = runs.first_step(group + 1);
    if (end - first != steps / active && end - first != (steps - 1) / active + 1) return false;
    for (const unsigned step : {first, end - 1})
      if (runs.group_of(step, nearly(active, steps, step)) != group) return false;
    return true;
  };
  CHECK(runs.first_step(0) == 0);
  CHECK(runs.first_step(active) == steps);
  CHECK(runs.first_step(active + 1) == steps);
  unsigned held = 0;
  while (held < active && holds(held)) ++held;
  CHECK(held == active);
}

// Items of 24 steps, whole parts of each.
void check_part_runs(unsigned items, unsigned parts) {
  constexpr unsigned item = 24, workgroups = 304;
  CAPTURE(items);
  CAPTURE(parts);
  const PartRuns<workgroups, 0xffffffffull, item> runs{items * item, parts};
  REQUIRE(runs.groups() == items * parts);
  bool holds = true;
  for (unsigned group = 0; group < items * parts; ++group) {
    const unsigned first = runs.first_step(group), end = runs.first_step(group + 1);
    holds &= first == group / parts * item + group % parts * item / parts && end > first;
    for (unsigned step = first; step < end; ++step) holds &= runs.group_of(step) == group && runs.group_of(step, 0) == group;
  }
  CHECK(holds);
  for (const unsigned idle : {items * parts, workgroups}) CHECK(runs.first_step(idle) == runs.steps);
}

} // namespace

TEST_CASE("stream-K: runs of steps of as many workgroups as are active, and back") {
  for (unsigned steps = 1; steps < 300; ++steps)
    for (unsigned active = 1; active <= steps; ++active) check_active_runs(steps, active);
  std::mt19937 random(34);
  for (int i = 0; i < 50; ++i) {
    const unsigned steps = (static_cast<unsigned>(random()) >> (4 + random() % 20)) + 1;
    check_active_runs(steps, static_cast<unsigned>(random()) % std::min(steps, 700U) + 1);
  }
  check_active_runs(1U << 24, 608);
}

TEST_CASE("stream-K: runs of steps and back") {
  for (unsigned steps = 1; steps < 1000; ++steps) {
    check_runs<1>(steps);
    check_runs<7>(steps);
    check_runs<304>(steps);
  }
  std::mt19937 random(33);
  for (int i = 0; i < 50; ++i) {
    const unsigned steps = static_cast<unsigned>(random()) >> random() % 20;
    check_runs<304>(steps);
    check_runs<608>(steps);
    check_runs<65536>(steps);
  }
  check_runs<65536>(0xffffffffu);
}

TEST_CASE("stream-K: counters and places of the workspace do not overlap") {
  const StreamKSpace space{.workgroups = 65, .numbers = 12, .counters = 3};
  CHECK(space.first_generation() == 68);
  CHECK(space.counter_bytes() == 768); // 133 words, in multiples of 256 bytes
  CHECK(space.bytes() == 768 + 65 * 2 * 12 * 8);
  CHECK(StreamKSpace{.workgroups = 0}.bytes() == 0);
}

TEST_CASE("short items of attention are whole, long ones are cut into about the square root of their steps") {
  const AttentionConfig c{.heads = 64, .kv_heads = 8, .workgroups = 256};
  const auto active = [&](unsigned steps, unsigned items) {
    return c.active_workgroups(steps * items, items, std::sqrt(static_cast<float>(steps)), 256.0F / static_cast<float>(items));
  };
  CHECK(active(16, 128) == 128);
  CHECK(active(16, 32) == 32);
  CHECK(active(17, 32) == 128); // four each
  CHECK(active(16, 8) == 32);   // few items
  CHECK(active(64, 128) == 256);
  CHECK(active(1, 1024) == 256);
  CHECK(active(0, 16) == 1);
}

TEST_CASE("stream-K: whole parts of items, and the workgroups that have none") {
  for (unsigned parts = 1; parts <= 8; ++parts)
    for (const unsigned items : {1U, 2U, 7U, 304 / parts}) check_part_runs(items, parts);
}

TEST_CASE("stream-K: runs go on from item to item where there are more items than workgroups") {
  const PartRuns<304, 0xffffffffull, 24> runs{24 * 400, 0};
  const StepRuns<304, 0xffffffffull> equal{24 * 400};
  CHECK(runs.groups() == 304);
  for (unsigned group = 0; group <= 304; ++group) CHECK(runs.first_step(group) == equal.first_step(group));
}

// The product of a workgroup's number and the steps of an item does not fit 32 bits: 131072 times 32768 is 0.
TEST_CASE("stream-K: workgroups that have no part of long items, among many") {
  const PartRuns<1U << 20, 1U << 30, 32768> runs{2 * 32768, 8};
  CHECK(runs.first_step(15) == 15 * 4096);
  for (const unsigned idle : {16U, 131072U, 131073U, 1U << 20}) CHECK(runs.first_step(idle) == runs.steps);
}

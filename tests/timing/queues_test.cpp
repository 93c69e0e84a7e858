// Proves that a queue serves at its rate, and that bytes under way are counted by time, and become fewer at their rate.
#include "isa_checks/timing/queues.h"
#include <doctest/doctest.h>

using namespace kiln::timing;

TEST_CASE("a queue serves one request after the other, and none before it comes") {
  Queue queue;
  CHECK(queue.serve(100, 10) == 110);
  CHECK(queue.serve(105, 10) == 120);
  CHECK(queue.serve(500, 10) == 510);
}

TEST_CASE("bytes are under way until they come") {
  InFlight bytes(64); // a cycle: as many as come in one
  bytes.add(2000, 64);
  bytes.add(1200, 32); // requested later, and nearer
  CHECK(bytes.at(1100) == 96);
  CHECK(bytes.at(1199) == 96);
  CHECK(bytes.at(1201) == 64);
  bytes.add(1900, 16);
  CHECK(bytes.at(1899) == 80);
  CHECK(bytes.at(5000) == 0);
}

TEST_CASE("bytes that come at once count as if they came at their rate, so that a later request is not served earlier") {
  constexpr double rate = 4, latency = 500;
  InFlight bytes(rate);
  bytes.add(1000, 400); // both come at once
  bytes.add(1000, 200);
  CHECK(bytes.at(999) == 600);
  double before = 0;
  for (double now = 999; now < 1300; ++now) {
    const double done = now + latency + bytes.at(now) / rate;
    CHECK(done >= before);
    before = done;
  }
  CHECK(bytes.at(1300) == 0);
}

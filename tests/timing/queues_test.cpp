// Proves that a queue serves at its rate, and that bytes under way are counted by time.
#include "isa_checks/timing/queues.h"
#include <doctest/doctest.h>

using namespace kiln::timing;

TEST_CASE("a queue serves one request after the other, and none before it comes") {
  Queue queue;
  CHECK(queue.serve(100, 10) == 110);
  CHECK(queue.serve(105, 10) == 120);
  CHECK(queue.serve(500, 10) == 510);
}

TEST_CASE("bytes under way are those whose time it is") {
  InFlight bytes;
  bytes.add(1000, 2000, 64);
  bytes.add(100, 1200, 32); // asked for later, of an earlier time
  CHECK(bytes.at(0) == 32);
  CHECK(bytes.at(1100) == 96);
  CHECK(bytes.at(1900) == 64);
  CHECK(bytes.at(5000) == 0);
}

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

TEST_CASE("bytes are under way until they come") {
  InFlight bytes;
  bytes.add(2000, 64);
  bytes.add(1200, 32); // requested later, and nearer
  CHECK(bytes.at(1100) == 96);
  CHECK(bytes.at(1199) == 96);
  CHECK(bytes.at(1200) == 64);
  bytes.add(1900, 16);
  CHECK(bytes.at(1899) == 80);
  CHECK(bytes.at(5000) == 0);
}

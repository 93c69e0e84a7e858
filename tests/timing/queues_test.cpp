// Proves that shared queues hold their rate whatever order requests come in, that one that is ahead does not hold up the others, and
// that bytes under way are counted by time.
#include "isa_checks/timing/queues.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <random>
#include <vector>

using namespace kiln::timing;

TEST_CASE("a request at a later time does not hold up those before it") {
  SharedQueue queue;
  CHECK(queue.serve(100'000, 10) == doctest::Approx(100'010));
  CHECK(queue.serve(50, 10) == doctest::Approx(60)); // a queue in order of arrival would say 100020
  CHECK(queue.serve(50, 10) <= 70);
  CHECK(queue.last() == doctest::Approx(100'010));
}

TEST_CASE("no stretch of time serves more than its length, and the last request ends alike in any order") {
  std::mt19937 random(7);
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) times.push_back(static_cast<double>(random() % 4000));
  std::vector<double> ends;
  for (int order = 0; order < 5; ++order) {
    SharedQueue queue;
    std::vector<double> done;
    for (const double t : times) done.push_back(queue.serve(t, 3.7));
    for (const double until : {1024.0, 2048.0, 4096.0}) { // whole slices
      const auto served = std::ranges::count_if(done, [&](double d) { return d <= until; });
      CHECK(static_cast<double>(served) * 3.7 <= until + 3.7);
    }
    ends.push_back(queue.last());
    std::ranges::shuffle(times, random);
  }
  for (const double end : ends) CHECK(end == doctest::Approx(2000 * 3.7).epsilon(0.01)); // busy from the first one on
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

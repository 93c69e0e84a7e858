// Proves that the simulation takes the time that a closed formula gives, on launches made by hand: dependent loads, streams at each
// level's rate, barriers, LDS, issue, flags between waves, workgroups in turn, and the launch itself.
#include "isa_checks/error.h"
#include "isa_checks/timing/predict.h"
#include <algorithm>
#include <doctest/doctest.h>

using namespace kiln::timing;

namespace {

// A launch of which every workgroup does the same; each line is its own unless said otherwise.
class Launch {
public:
  explicit Launch(std::uint32_t workgroups, int waves = 1) {
    record_.kernel = "hand";
    record_.workgroups = workgroups;
    record_.waves = waves;
    record_.workgroups_per_cu = 1;
    group_.waves.resize(static_cast<std::size_t>(waves));
  }
  std::uint32_t code(Action action, float cycles = 4, int vmcnt = 63, int lgkmcnt = 15) {
    Code c;
    c.action = action;
    c.cycles = cycles;
    c.vmcnt = static_cast<std::uint8_t>(vmcnt);
    c.lgkmcnt = static_cast<std::uint8_t>(lgkmcnt);
    record_.code.push_back(c);
    return static_cast<std::uint32_t>(record_.code.size() - 1);
  }
  void step(int wave, std::uint32_t code, std::uint32_t access = none) {
    group_.waves[static_cast<std::size_t>(wave)].push_back({.code = code, .access = access});
  }
  // An access of `lines` lines that nobody touched before.
  std::uint32_t access(int lines) {
    group_.accesses.push_back({.first = static_cast<std::uint32_t>(group_.lines.size()),
                               .lines = static_cast<std::uint16_t>(lines),
                               .halves = static_cast<std::uint16_t>(2 * lines),
                               .bytes = static_cast<std::uint32_t>(128 * lines)});
    for (int i = 0; i < lines; ++i) group_.lines.push_back(next_line_++);
    return static_cast<std::uint32_t>(group_.accesses.size() - 1);
  }
  Access& access_at(std::uint32_t a) { return group_.accesses[a]; }
  Record& record() {
    if (record_.recorded.empty()) {
      record_.recorded.push_back(group_);
      const double lines = static_cast<double>(next_line_ - first_line);
      Buffer b{.name = "all", .first_line = first_line, .end_line = first_line + static_cast<std::uint64_t>(lines) * record_.workgroups};
      b.touched = b.requested = lines * record_.workgroups;
      record_.buffers = {b};
      record_.footprint = 128 * b.touched;
    }
    return record_;
  }
  double cycles(CacheState cache, const char* chip_name = "mi300x") { return simulate(record(), chip(chip_name), {.cache = cache}).cycles; }

private:
  static constexpr std::uint64_t first_line = 1 << 20;
  std::uint64_t next_line_ = first_line;
  Record record_;
  Workgroup group_;
};

const Chip& mi300x = chip("mi300x");

void end(Launch& launch, int waves = 1) {
  const std::uint32_t code = launch.code(Action::end);
  for (int w = 0; w < waves; ++w) launch.step(w, code);
}

} // namespace

TEST_CASE("a chain of dependent loads takes their latencies") {
  for (const auto& [state, latency] :
       {std::pair{CacheState::cold, mi300x.hbm_latency_ns * mi300x.clock_ghz},
        std::pair{CacheState::mall, mi300x.mall_latency_ns * mi300x.clock_ghz}, std::pair{CacheState::l2, mi300x.l2_latency_cycles}}) {
    Launch launch(1);
    const std::uint32_t load = launch.code(Action::load), wait = launch.code(Action::wait, 4, 0);
    for (int i = 0; i < 50; ++i) {
      launch.step(0, load, launch.access(1));
      launch.step(0, wait);
    }
    end(launch);
    CHECK(launch.cycles(state) == doctest::Approx(50 * latency).epsilon(0.06));
  }
}

TEST_CASE("a load of a line that is in L1 takes L1's latency") {
  Launch launch(1);
  const std::uint32_t load = launch.code(Action::load), wait = launch.code(Action::wait, 4, 0), line = launch.access(1);
  for (int i = 0; i < 100; ++i) {
    launch.step(0, load, line);
    launch.step(0, wait);
  }
  end(launch);
  CHECK(launch.cycles(CacheState::cold) ==
        doctest::Approx(mi300x.hbm_latency_ns * mi300x.clock_ghz + 99 * (mi300x.l1_latency_cycles + 8)).epsilon(0.05));
}

// Two halves of 16 rows that lie 16 KiB apart: one set of L1, of four ways, has them all.
TEST_CASE("a line on its way is requested once") {
  Launch launch(1);
  const std::uint32_t load = launch.code(Action::load), wait = launch.code(Action::wait, 4, 0), rows = launch.access(16);
  launch.step(0, load, rows), launch.step(0, load, rows), launch.step(0, wait);
  end(launch);
  Record& record = launch.record();
  for (std::uint64_t i = 0; i < 16; ++i) record.recorded[0].lines[i] += 127 * i;
  record.buffers[0].end_line += 127 * 16;
  const auto traffic = simulate(record, mi300x, {.cache = CacheState::cold}).traffic;
  CHECK(traffic.l1 == 16 * 128.0);
  CHECK(traffic.l2 + traffic.mall + traffic.hbm == 16 * 128.0);
}

// The second wave asks for the last of 100 lines, which the first one has asked for.
TEST_CASE("a line that L2 has is in L1 when the path from there has brought it") {
  Launch launch(1, 2);
  const std::uint32_t load = launch.code(Action::load), wait = launch.code(Action::wait, 4, 0), nop = launch.code(Action::nop, 4000);
  const std::uint32_t lines = launch.access(100), last = launch.access(1);
  launch.access_at(last).first = 99;
  launch.step(0, load, lines), launch.step(1, load, last), launch.step(1, wait), launch.step(1, nop);
  end(launch, 2);
  const double looked_up = 100 * 128 / mi300x.l1_bytes_per_cycle, brought = 100 * 128 / mi300x.fill_bytes_per_cycle;
  CHECK(launch.cycles(CacheState::l2) == doctest::Approx(looked_up + brought + mi300x.l2_latency_cycles + 4000).epsilon(0.01));
}

TEST_CASE("what a launch has read is in L2 for the next one, what it has written in MALL") {
  for (const bool writes : {false, true}) {
    Launch launch(1);
    const std::uint32_t load = launch.code(Action::load), wait = launch.code(Action::wait, 4, 0), store = launch.code(Action::store);
    const std::uint32_t line = launch.access(1);
    launch.step(0, load, line), launch.step(0, wait);
    if (writes) launch.step(0, store, line);
    end(launch);
    const auto traffic = simulate(launch.record(), mi300x, {.cache = CacheState::l2}).traffic;
    CHECK(traffic.l2 == (writes ? 0 : 128));
    CHECK(traffic.mall == (writes ? 128 : 0));
  }
}

// L2 is full of what was read when twice as much is written: of each of its 2048 sets one way takes all that is streamed.
TEST_CASE("what is stored streamed leaves L2 first, and what was read stays") {
  for (const bool streamed : {false, true}) {
    L2 l2;
    constexpr std::uint64_t lines = kiln::machine::l2_bytes / kiln::line_bytes, sets = lines / kiln::machine::l2_ways;
    double written = 0;
    for (std::uint64_t line = 0; line < lines; ++line) written += l2.put(line, 0, 0, false);
    CHECK(written == 0);
    for (std::uint64_t line = lines; line < 3 * lines; ++line) written += l2.put(line, 0, kiln::line_bytes, streamed);
    CHECK(written == (2.0 * lines - (streamed ? sets : lines)) * kiln::line_bytes);
    std::uint64_t found = 0;
    for (std::uint64_t line = 0; line < lines; ++line) found += l2.find(line) != nullptr ? 1 : 0;
    CHECK(found == (streamed ? lines - sets : 0));
  }
}

TEST_CASE("a stream from every CU with enough in flight runs at the rate of HBM, or of MALL") {
  for (const auto& [state, rate] : {std::pair{CacheState::cold, mi300x.hbm_tbs}, std::pair{CacheState::mall, mi300x.mall_tbs}}) {
    Launch launch(304, 16);
    const std::uint32_t load = launch.code(Action::load), wait = launch.code(Action::wait, 4, 15);
    constexpr int loads = 40; // what is read fits MALL
    for (int w = 0; w < 16; ++w)
      for (int i = 0; i < loads; ++i) {
        launch.step(w, load, launch.access(8));
        launch.step(w, wait);
      }
    end(launch, 16);
    const double bytes = 304.0 * 16 * loads * 1024;
    CHECK(launch.cycles(state) == doctest::Approx(bytes / rate / 1e3 * mi300x.clock_ghz).epsilon(0.12));
  }
}

// One load of 1 KiB of each of 8 waves a CU is under way: more than the latency of an empty HBM is for, less than its rate takes.
TEST_CASE("a stream from every CU with 8 KiB in flight is bound by the latency that so many bytes have") {
  Launch launch(304, 8);
  const std::uint32_t load = launch.code(Action::load), wait = launch.code(Action::wait, 4, 0);
  constexpr int loads = 60;
  for (int w = 0; w < 8; ++w)
    for (int i = 0; i < loads; ++i) launch.step(w, load, launch.access(8)), launch.step(w, wait);
  end(launch, 8);
  const double ns = mi300x.hbm_latency_ns + mi300x.hbm_ns_per_byte * (8 * 1024 - mi300x.hbm_free_bytes);
  const double on_the_way = 8 * 128 / mi300x.l1_bytes_per_cycle + 8 * 128 / mi300x.fill_bytes_per_cycle; // through L1, and from L2
  CHECK(launch.cycles(CacheState::cold) == doctest::Approx(loads * (ns * mi300x.clock_ghz + on_the_way)).epsilon(0.01));
}

TEST_CASE("a stream of one wave with few bytes in flight is bound by latency: bytes in flight a latency") {
  Launch launch(1);
  const std::uint32_t load = launch.code(Action::load), wait = launch.code(Action::wait, 4, 3); // four loads of 1 KiB under way
  constexpr int loads = 200;
  for (int i = 0; i < loads; ++i) {
    launch.step(0, load, launch.access(8));
    launch.step(0, wait);
  }
  end(launch);
  CHECK(launch.cycles(CacheState::cold) == doctest::Approx(loads / 4.0 * mi300x.hbm_latency_ns * mi300x.clock_ghz).epsilon(0.1));
}

TEST_CASE("vector instructions of four waves on one SIMD share it, those of four waves on four SIMDs do not") {
  for (const int waves : {4, 16}) {
    Launch launch(1, waves);
    const std::uint32_t valu = launch.code(Action::valu);
    for (int w = 0; w < waves; ++w)
      for (int i = 0; i < 1000; ++i) launch.step(w, valu);
    end(launch, waves);
    CHECK(launch.cycles(CacheState::cold) == doctest::Approx(4.0 * 1000 * waves / 4).epsilon(0.02));
  }
}

TEST_CASE("transcendental and matrix instructions take the time of their pipe; vector instructions hide under matrix ones") {
  Launch launch(1);
  const std::uint32_t matrix = launch.code(Action::matrix, 16), valu = launch.code(Action::valu), trans = launch.code(Action::trans, 16);
  for (int i = 0; i < 100; ++i) {
    launch.step(0, matrix);
    for (int v = 0; v < 3; ++v) launch.step(0, valu);
  }
  for (int i = 0; i < 100; ++i) launch.step(0, trans);
  end(launch);
  CHECK(launch.cycles(CacheState::cold) == doctest::Approx(100 * 16 + 100 * 16).epsilon(0.02));
}

TEST_CASE("waves go on from a barrier when the last one has come") {
  Launch launch(1, 4);
  const std::uint32_t valu = launch.code(Action::valu), barrier = launch.code(Action::barrier);
  for (int w = 0; w < 4; ++w) {
    for (int i = 0; i < (w == 2 ? 1000 : 10); ++i) launch.step(w, valu);
    launch.step(w, barrier);
    for (int i = 0; i < 100; ++i) launch.step(w, valu);
  }
  end(launch, 4);
  CHECK(launch.cycles(CacheState::cold) == doctest::Approx(4 * 1100 + mi300x.barrier_cycles).epsilon(0.01));
}

// Behind the barrier both waves are at the same place at the same times, and LDS serves first who asks first.
TEST_CASE("of waves that may go at one time the one with the most to do goes first, whichever has just gone") {
  Launch launch(1, 2);
  const std::uint32_t valu = launch.code(Action::valu), barrier = launch.code(Action::barrier), lds = launch.code(Action::lds),
                      wait = launch.code(Action::wait, 4, 63, 0), nop = launch.code(Action::nop, 1000), access = launch.access(0);
  launch.access_at(access).passes = 500;
  for (const int w : {0, 1}) {
    launch.step(w, barrier), launch.step(w, valu), launch.step(w, lds, access), launch.step(w, wait);
    for (int i = 0; i < (w == 0 ? 5 : 1); ++i) launch.step(w, nop);
  }
  end(launch, 2);
  const double pass = 500 * mi300x.lds_pass_cycles;
  CHECK(launch.cycles(CacheState::cold) == doctest::Approx(mi300x.lds_latency_cycles + pass + 5000).epsilon(0.01));
}

TEST_CASE("LDS: a dependent read takes its latency and passes; a stream takes its passes; conflicts cost theirs") {
  for (const std::uint32_t passes : {8U, 32U}) {
    Launch launch(1, 8);
    const std::uint32_t lds = launch.code(Action::lds), wait = launch.code(Action::wait, 4, 63, 0), access = launch.access(0);
    launch.access_at(access).passes = passes;
    for (int w = 0; w < 8; ++w)
      for (int i = 0; i < 100; ++i) launch.step(w, lds, access);
    for (int w = 0; w < 8; ++w) launch.step(w, wait);
    end(launch, 8);
    CHECK(launch.cycles(CacheState::cold) == doctest::Approx(800 * passes * mi300x.lds_pass_cycles).epsilon(0.05));
  }
  Launch chain(1);
  const std::uint32_t lds = chain.code(Action::lds), wait = chain.code(Action::wait, 4, 63, 0), access = chain.access(0);
  chain.access_at(access).passes = 8;
  for (int i = 0; i < 100; ++i) {
    chain.step(0, lds, access);
    chain.step(0, wait);
  }
  end(chain);
  CHECK(chain.cycles(CacheState::cold) == doctest::Approx(100 * (mi300x.lds_latency_cycles + 16 + 4)).epsilon(0.05));
}

TEST_CASE("a wave that reads a flag goes on after the wave that raises it") {
  Launch launch(1, 2);
  const std::uint32_t valu = launch.code(Action::valu), raise = launch.code(Action::lds), polls = launch.code(Action::lds),
                      flag = launch.access(0), read = launch.access(0);
  for (int i = 0; i < 500; ++i) launch.step(0, valu);
  launch.step(0, raise, flag);
  launch.access_at(read).writer = 0;
  launch.access_at(read).written_at = 500;
  launch.step(1, polls, read);
  for (int i = 0; i < 100; ++i) launch.step(1, valu);
  end(launch, 2);
  launch.record().code[polls].polls = true;
  CHECK(launch.cycles(CacheState::cold) == doctest::Approx(4 * 600 + mi300x.lds_latency_cycles).epsilon(0.02));
}

TEST_CASE("workgroups that find no room wait for their turn") {
  Launch launch(304 * 3, 4);
  const std::uint32_t valu = launch.code(Action::valu);
  for (int w = 0; w < 4; ++w)
    for (int i = 0; i < 5000; ++i) launch.step(w, valu);
  end(launch, 4);
  CHECK(launch.cycles(CacheState::cold) == doctest::Approx(3 * 4 * 5000 + 2 * mi300x.slot_turnover_ns * mi300x.clock_ghz).epsilon(0.02));
}

// Workgroups go to XCDs in turn: of eight, 3 has most lines and 4 most instructions.
TEST_CASE("the slowest of unlike XCDs decides, whether it has the most instructions or the most lines") {
  for (const int vector_instructions : {1000, 30000}) {
    Launch launch(8);
    const std::uint32_t load = launch.code(Action::load), wait = launch.code(Action::wait, 4, 0), valu = launch.code(Action::valu);
    end(launch);
    Record& record = launch.record();
    const Workgroup idle = record.recorded.front();
    for (std::uint32_t number = 1; number < 8; ++number) {
      record.recorded.push_back(idle);
      record.recorded.back().number = number;
      record.recorded.back().signature = number;
    }
    const Step last = idle.waves[0].back();
    Workgroup &reads = record.recorded[3], &computes = record.recorded[4];
    reads.waves[0].clear(), computes.waves[0].clear();
    for (std::uint32_t i = 0; i < 50; ++i) {
      reads.lines.push_back((1 << 20) + i);
      reads.accesses.push_back({.first = i, .lines = 1, .halves = 2, .bytes = 128});
      reads.waves[0].insert(reads.waves[0].end(), {{.code = load, .access = i}, {.code = wait, .access = none}});
    }
    computes.waves[0].assign(static_cast<std::size_t>(vector_instructions), {.code = valu, .access = none});
    for (Workgroup* group : {&reads, &computes}) group->waves[0].push_back(last);
    record.buffers = {{.name = "all", .first_line = 1 << 20, .end_line = (1 << 20) + 50, .touched = 50, .requested = 50}};
    const double of_reads = 50 * mi300x.hbm_latency_ns * mi300x.clock_ghz, of_computing = 4.0 * vector_instructions;
    CHECK(launch.cycles(CacheState::cold) == doctest::Approx(std::max(of_reads, of_computing)).epsilon(0.06));
  }
}

TEST_CASE("what is written leaves L2 at the rate of writing, and is part of the time") {
  Launch launch(304, 4);
  const std::uint32_t store = launch.code(Action::store);
  for (int w = 0; w < 4; ++w)
    for (int i = 0; i < 200; ++i) launch.step(w, store, launch.access(8));
  end(launch, 4);
  const double bytes = 304.0 * 4 * 200 * 1024;
  CHECK(launch.cycles(CacheState::cold) == doctest::Approx(bytes / mi300x.write_tbs / 1e3 * mi300x.clock_ghz).epsilon(0.15));
}

TEST_CASE("a kernel that does nothing takes the floor; a prediction says that it is one") {
  Launch launch(1);
  end(launch);
  const Prediction p = predict(launch.record(), mi300x, {.cache = CacheState::mall});
  CHECK(p.microseconds == doctest::Approx(mi300x.floor_ns / 1e3).epsilon(0.01));
  CHECK(to_text(p).find("predicted") != std::string::npos);
  CHECK(to_text(p).find("mi300x, caches mall") != std::string::npos);
  CHECK(to_json(p).find("\"predicted_us\"") != std::string::npos);
  CHECK(to_html(p).find("predicted on mi300x, caches mall") != std::string::npos);
}

TEST_CASE("an unknown chip is refused with the names of those there are") {
  CHECK_THROWS_WITH_AS(chip("mi100"), doctest::Contains("use one of mi300x, mi308x, mi325x, mi350x, mi355x"), kiln::isa::Error);
}

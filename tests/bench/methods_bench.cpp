// Methods of products: what `kiln tune` gains by trying every method, beside the best of the cost model's first three schedules, predicted
// by the simulation with cold caches. Arguments: words that select points by kind or architecture ("fp8", "gfx950").
#include "gen/catalog/catalog.h"
#include "gen/families/common/family.h"
#include "runtime/table.h"
#include "runtime/tune/try_schedule.h"
#include "tests/bench/arguments.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <span>

using namespace kiln;

namespace {

struct Kind {
  std::string_view name, entry;
  DType type = f16;
  std::pair<int, int> shape = {4096, 4096}; // rows and columns of weights
};

// Weights of 16 bits, 8, blocks with scales, 4 bits with scales, and MXFP4.
std::vector<Kind> kinds(const Target& to) {
  return {{.name = "f16", .entry = "gemm"},
          {.name = "bf16", .entry = "gemm", .type = bf16},
          {.name = "fp8", .entry = "gemm", .type = to.fp8()},
          {.name = "deep", .entry = "gemm", .type = to.fp8(), .shape = {2304, 16384}},
          {.name = "blocks", .entry = "gemm_block_scaled", .type = to.fp8()},
          {.name = "int4", .entry = "gemm_w4a16"},
          {.name = "mxfp4", .entry = "gemm_mx", .type = bf16}};
}

struct Point {
  std::string title;
  double first = 0;                   // microseconds, the best of the model's first three
  std::map<std::string, double> best; // of each method; 0: none keeps its contract
};

Point compare(const Kind& kind, std::int64_t m, std::pair<int, int> shape, const Target& to, bool quick) {
  const KernelSpec spec =
      catalog_spec(std::string(kind.entry), {.dtype = kind.type, .fp8 = to.fp8(), .m = m, .n = shape.first, .k = shape.second});
  const Plan plan = make_plan(spec, to);
  const std::vector<Schedule> tried = tuning_candidates(plan, to, quick ? 1 : simulated_first, {.atomics = true, .sparse = true});
  const std::size_t of_model = std::min<std::size_t>(quick ? 1 : simulated_first, candidates(plan, to).size());
  Point point{.title = fmt::format("{} {} m={} {}x{}", to.arch(), kind.name, m, shape.first, shape.second), .first = 0, .best = {}};
  const std::vector<RunTimeSizes> sizes = nominal_sizes(plan);
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const double us =
        try_schedule(plan, tried[i], to, to.chip(), {.changes = false, .alone = true}, sizes, own_process_options(process_environment()))
            .microseconds();
    double& best = point.best[std::string(tried[i].family->method(tried[i]))];
    if (us > 0 && (best == 0 || us < best)) best = us;
    if (us > 0 && i < of_model && (point.first == 0 || us < point.first)) point.first = us;
  }
  return point;
}

std::string text_of(const Point& point) {
  std::vector<std::string> words;
  for (const auto& [method, us] : point.best)
    words.push_back(us > 0 ? fmt::format("{} {:.2f}", method, us) : method + " breaks its contract");
  return fmt::format("{}: first three {:.2f} us; {}", point.title, point.first, fmt::join(words, ", "));
}

// By method: at how many points it was tried, has a schedule that keeps its contract, and is quicker than the model's first three, by how
// much.
std::string summary(const std::vector<Point>& points) {
  Table table{.header = {"method", "tried", "kept its contract", "quicker", "by more than 3 %", "most", "the quickest of all"},
              .rows = {},
              .right = {false, true, true, true, true, true, true}};
  struct Counts {
    int tried = 0, kept = 0, quicker = 0, clearly = 0, wins = 0;
    double most = 0;
  };
  std::map<std::string, Counts> counts;
  for (const Point& p : points) {
    const std::string* winner = nullptr;
    double least = p.first;
    for (const auto& [method, us] : p.best) {
      Counts& c = counts[method];
      ++c.tried;
      if (us == 0) continue;
      const double gain = p.first / us - 1;
      ++c.kept, c.quicker += gain > 0.001, c.clearly += gain > 0.03, c.most = std::max(c.most, gain);
      if (us < 0.999 * least) least = us, winner = &method;
    }
    if (winner != nullptr) ++counts[*winner].wins;
  }
  for (const auto& [method, c] : counts)
    table.rows.push_back({method, std::to_string(c.tried), std::to_string(c.kept), std::to_string(c.quicker), std::to_string(c.clearly),
                          fmt::format("{:.1f} %", 100 * c.most), std::to_string(c.wins)});
  return to_text(table);
}

} // namespace

int main(int argc, char** argv) {
  try {
    const bool quick = take_short_form(argc, argv);
    const std::vector<std::string> words(argv + 1, argv + argc);
    std::vector<Point> points;
    for (const std::string_view arch : known_archs())
      for (const Kind& kind : kinds(target(arch)))
        for (const std::int64_t m : {1, 8, 32, 128}) {
          if (quick && (kind.name != "f16" || m != 1)) continue;
          if (!std::ranges::all_of(words, [&](const std::string& w) { return w == arch || w == kind.name; })) continue;
          points.push_back(compare(kind, m, quick ? std::pair(64, 512) : kind.shape, target(arch), quick));
          fmt::print("{}\n", text_of(points.back()));
          std::fflush(stdout);
        }
    fmt::print("\nBeside the best of the cost model's first three, of {} points:\n{}", points.size(), summary(points));
    return points.empty() ? 1 : 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}

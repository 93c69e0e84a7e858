// Choice of schedules: at points drawn from the shapes of models, how much longer the chosen schedule takes than the best that is known,
// both predicted by the simulation, and what simulating the cost model's first ones gains. Known are all candidates; of products besides
// them schedules drawn at random from what `--set` can say, and of attention, which has one candidate, twelve numbers of workgroups.
// Arguments: first seed, how many, and a file that keeps what was predicted, so that another order of the same schedules is judged at once.
// Exit code 1: a bound of docs/timing_model.md is missed; 2: wrong arguments.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "gen/families/common/family.h"
#include "gen/families/schedule.h"
#include "gen/reference/random.h"
#include "gen/spec/characters.h"
#include "isa_checks/parallel.h"
#include "isa_checks/timing/record.h"
#include "runtime/table.h"
#include "runtime/tune/try_schedule.h"
#include "tests/bench/arguments.h"
#include <algorithm>
#include <array>
#include <cstdio>
#include <fmt/ranges.h>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>

using namespace kiln;

namespace {

struct Point {
  std::string kind, title;
  KernelSpec spec;
  Target to;
};

// Rows and columns of weights: Llama 3 8B, 70B on 8 and 405B on 8 GPUs, DeepSeek-V3, Qwen3 32B and 30B-A3B, gpt-oss-120b.
constexpr std::array<std::pair<int, int>, 34> shapes = {
    {{6144, 4096},  {4096, 4096},  {28672, 4096}, {4096, 14336}, {1280, 8192}, {8192, 1024}, {7168, 8192}, {8192, 3584}, {2304, 16384},
     {16384, 2048}, {13312, 4096}, {16384, 1664}, {2112, 7168},  {1536, 7168}, {3072, 1536}, {7168, 2048}, {4608, 7168}, {7168, 2304},
     {256, 7168},   {24576, 1536}, {512, 7168},   {9216, 5120},  {5120, 3200}, {5120, 8192}, {6400, 5120}, {5120, 2048}, {4096, 2048},
     {2048, 4096},  {1024, 4096},  {768, 2048},   {2048, 768},   {128, 2048},  {5120, 2880}, {2880, 4096}}};

Point product(Random& random, const Target& to) {
  static constexpr std::string_view names[] = {
      "gemm",    "gemm",       "gemm",       "gemm",         "gemm_bias",         "gemm_block_scaled",
      "gemm_mx", "gemm_w4a16", "gemm_w4a16", "gemm_w_mxfp4", "gemm_swiglu_quant", "gemm_dynamic_quant"};
  CatalogOptions o;
  o.fp8 = to.fp8();
  std::string name(names[random.between(0, std::ssize(names) - 1)]);
  const bool sixteen = name == "gemm_w4a16" || name == "gemm_w_mxfp4" || name == "gemm_mx" || name == "gemm_dynamic_quant";
  o.dtype = sixteen || random.chance(35) ? (random.chance(30) ? f16 : bf16) : to.fp8();
  if (name == "gemm_block_scaled") o.dtype = to.fp8();
  o.m = random.pick({1, 1, 2, 4, 8, 16, 16, 32, 32, 64, 64, 128});
  const auto [n, k] = shapes[static_cast<std::size_t>(random.between(0, std::ssize(shapes) - 1))];
  o.n = n, o.k = k;
  return {o.n <= 1024 ? "products, n <= 1024" : "products",
          fmt::format("{} m={} n={} k={} {} {}", name, o.m, o.n, o.k, to_string(o.dtype), to.arch()), catalog_spec(name, o), to};
}

Point rows_point(Random& random, const Target& to) {
  static constexpr std::string_view names[] = {"add_rmsnorm_quant", "add_rmsnorm_dynamic_quant",
                                               "rmsnorm",           "layernorm",
                                               "softmax",           "swiglu_quant",
                                               "silu_mul",          "group_quant",
                                               "scaled_add",        "per_token_quant"};
  CatalogOptions o;
  o.fp8 = to.fp8();
  const std::string name(names[random.between(0, std::ssize(names) - 1)]);
  o.dtype = random.chance(70) ? bf16 : f16;
  o.cols = random.pick({512, 1536, 2048, 2880, 3584, 4096, 5120, 7168, 8192, 13312, 16384});
  const std::int64_t rows = random.pick({1, 2, 8, 16, 32, 64, 128, 256, 1024});
  std::string text = to_text(catalog_spec(name, o));
  const std::string any = "dim rows\n";
  text.replace(text.find(any), any.size(), fmt::format("dim rows[{0}..{0}]\n", rows));
  return {"rows and flat", fmt::format("{} rows={} cols={} {} {}", name, rows, o.cols, to_string(o.dtype), to.arch()), parse_spec(text),
          to};
}

Point attention_point(Random& random, const Target& to) {
  CatalogOptions o;
  o.fp8 = to.fp8();
  o.dtype = bf16;
  o.kv_heads = random.pick({1, 2, 8});
  o.heads = o.kv_heads * random.pick({4, 8});
  o.length = random.pick({512, 2048, 8192});
  const std::int64_t sequences = random.pick({1, 4, 16});
  const std::string name = random.chance(50) ? "attention_decode" : "attention_paged";
  std::string text = to_text(catalog_spec(name, o));
  const std::size_t at = text.find("dim "), end = text.find('\n', at); // sequences
  const std::string dim = text.substr(at + 4, text.find_first_of("[\n", at) - at - 4);
  text.replace(at, end - at, fmt::format("dim {0}[{1}..{1}]", dim, sequences));
  // Sequences have pages of their own: one page for all would come from L2.
  constexpr std::string_view any_pages = "dim pages_of_all\n";
  if (const std::size_t pages = text.find(any_pages); pages != text.npos)
    text.replace(pages, any_pages.size(), fmt::format("dim pages_of_all[{0}..{0}]\n", sequences * o.length / o.page));
  return {"attention", fmt::format("{} {}/{} heads, {} keys, {} sequences {}", name, o.heads, o.kv_heads, o.length, sequences, to.arch()),
          parse_spec(text), to};
}

Point point_of(std::uint64_t seed) {
  Random random(seed);
  const Target to = target(random.chance(50) ? "gfx942" : "gfx950");
  const std::int64_t kind = random.between(1, 100);
  return kind <= 74 ? product(random, to) : kind <= 94 ? rows_point(random, to) : attention_point(random, to);
}

// Predicted times by point and schedule; 0 for a broken contract, and for what is too long to be simulated.
class Known {
public:
  explicit Known(std::string path) : path_(std::move(path)) {
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);)
      if (const std::size_t tab = line.rfind('\t'); tab != line.npos) times_[line.substr(0, tab)] = std::stod(line.substr(tab + 1));
  }
  double time(const std::string& key, const auto& predict) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = times_.find(key); found != times_.end()) return found->second;
    }
    const double us = predict();
    const std::lock_guard lock(mutex_);
    if (!path_.empty()) std::ofstream(path_, std::ios::app) << key << '\t' << us << '\n';
    return us;
  }

private:
  std::string path_;
  std::map<std::string, double> times_;
  std::mutex mutex_;
};

struct Regret {
  std::string kind, text;
  double chosen = 0, of_first = 0; // shares that the cost model's choice, and the quickest of those that are simulated, take over the best
  std::size_t simulated = 0;       // schedules
};

// What candidates are compared with, though none is offered: so the bench also judges what the family leaves out.
std::vector<Schedule> others(const Plan& plan, const Schedule& first, const Point& point, std::uint64_t seed) {
  std::vector<Schedule> result;
  if (point.kind == "attention")
    for (const int workgroups : {8, 16, 32, 48, 64, 96, 128, 192, 256, 304, 512, 608})
      result.push_back(with_overrides(first, {fmt::format("workgroups={}", workgroups)}, plan, point.to));
  if (plan.products.empty() || point.kind == "attention") return result;
  constexpr std::size_t wanted = 8;
  constexpr int tries = 100; // most settings do not fit each other
  Random random(seed);
  const std::int64_t n = plan.products.front().n;
  for (int i = 0; i < tries && result.size() < wanted; ++i) {
    const std::int64_t tile = random.pick({16, 32, 64}), tiles = std::max<std::int64_t>(1, n / tile), cus = point.to.compute_units();
    const std::int64_t workgroups = random.pick({tiles, cus, std::max<std::int64_t>(1, cus / tiles) * tiles, 2 * cus, 2 * tiles});
    try {
      result.push_back(with_overrides(first,
                                      {"method=matrix", fmt::format("tile_n={}", tile), fmt::format("waves={}", random.pick({1, 2, 4, 8})),
                                       fmt::format("loads={}", random.pick({1, 2})), fmt::format("stages={}", random.between(2, 16)),
                                       fmt::format("workgroups={}", workgroups), fmt::format("vec={}", random.pick({1, 2, 4, 8}))},
                                      plan, point.to));
    } catch (const UserError&) { // the next one
    }
  }
  return result;
}

// By all XCDs, or by one, as `kiln aot` decides.
double predicted(const Plan& plan, const Schedule& schedule, const Target& to, bool one_xcd) {
  const TriedSchedule tried = try_schedule(plan, schedule, to, to.chip(), {.changes = false, .one_xcd = one_xcd, .alone = true},
                                           nominal_sizes(plan), own_process_options(process_environment()));
  if (!tried.too_long.empty()) fmt::print("not compared: {}\n", tried.too_long);
  return tried.microseconds();
}

Regret regret_of(const Point& point, std::uint64_t seed, Known& known, bool quick) {
  const Plan plan = make_plan(point.spec, point.to);
  std::vector<Schedule> all = candidates(plan, point.to);
  if (quick) all.resize(1);
  const std::size_t offered = all.size();
  std::ranges::copy(others(plan, all.front(), point, seed), std::back_inserter(all));
  if (quick) all.resize(std::min<std::size_t>(all.size(), 2));
  double chosen = 0, best = 0;
  std::string best_fields, chosen_fields;
  std::vector<Schedule> kept; // that `kiln aot` simulates
  std::vector<double> times;  // theirs
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Schedule& schedule = all[i];
    const std::string fields = schedule.family->fields_text(schedule);
    const double us = known.time(point.title + "\t" + fields, [&] { return predicted(plan, schedule, point.to, false); });
    if (us == 0) continue; // the next one is tried, as build_kernel does
    const bool is_first = i < offered && kept.empty();
    if (is_first) chosen = us, chosen_fields = fields;
    if (is_first || (i < offered && std::ssize(kept) < simulated_first && is_worth_simulating(plan, point.to, kept, schedule)))
      kept.push_back(schedule), times.push_back(us);
    if (best == 0 || us < best) best = us, best_fields = fields;
  }
  if (kept.empty()) throw Error(point.title + ": no schedule keeps its contract");
  std::vector<double> decide = times;
  if (kept.size() > 1 && !plan.products.empty())
    std::ranges::transform(kept, decide.begin(), [&](const Schedule& s) {
      return known.time(point.title + "\tone XCD " + s.family->fields_text(s), [&] { return predicted(plan, s, point.to, true); });
    });
  const double taken = times[static_cast<std::size_t>(std::ranges::min_element(decide) - decide.begin())];
  return {point.kind,
          fmt::format("{}: {:.2f} us, best {:.2f}, {:.1f} % over, the best of {} simulated {:.1f} %\n  chosen {}\n  best   {}", point.title,
                      chosen, best, 100 * (chosen / best - 1), kept.size(), 100 * (taken / best - 1), chosen_fields, best_fields),
          chosen / best - 1, taken / best - 1, kept.size()};
}

struct Summary {
  double mean = 0, p90 = 0, worst = 0;
};
Summary summary(std::vector<double> all) {
  std::ranges::sort(all);
  const auto n = static_cast<double>(all.size());
  return {std::accumulate(all.begin(), all.end(), 0.0) / n, all[static_cast<std::size_t>(0.9 * (n - 1))], all.back()};
}

bool print(const std::vector<Regret>& regrets) {
  Table table{.header = {"over the best known", "points", "cost model: mean", "p90", "worst", "simulated: mean", "p90", "worst"},
              .rows = {},
              .right = {false, true, true, true, true, true, true, true}};
  std::map<std::string, std::vector<const Regret*>> by_kind;
  for (const Regret& r : regrets) by_kind["all"].push_back(&r), by_kind[r.kind].push_back(&r);
  bool met = true;
  for (const auto& [kind, of_kind] : by_kind) {
    std::vector<double> chosen, first;
    for (const Regret* r : of_kind) chosen.push_back(r->chosen), first.push_back(r->of_first);
    const Summary c = summary(chosen), f = summary(first);
    table.rows.push_back({kind, std::to_string(of_kind.size()), fmt::format("{:.1f} %", 100 * c.mean), fmt::format("{:.1f} %", 100 * c.p90),
                          fmt::format("{:.1f} %", 100 * c.worst), fmt::format("{:.1f} %", 100 * f.mean),
                          fmt::format("{:.1f} %", 100 * f.p90), fmt::format("{:.1f} %", 100 * f.worst)});
    if (kind == "all") met = f.mean <= 0.015 && f.p90 <= 0.05 && f.worst <= 0.15;
  }
  const auto sum = [](std::size_t n, const Regret& r) { return n + r.simulated; };
  const std::size_t compiled = std::accumulate(regrets.begin(), regrets.end(), std::size_t{0}, sum);
  fmt::print("{}{:.2f} schedules of a point simulated\n", to_text(table),
             static_cast<double>(compiled) / static_cast<double>(regrets.size()));
  return met;
}

} // namespace

int main(int argc, char** argv) {
  const bool quick = take_short_form(argc, argv);
  std::uint64_t first = 20261125, count = 150;
  const bool read = (argc < 2 || read_whole(argv[1], first)) && (argc < 3 || read_whole(argv[2], count));
  if (!read || count == 0 || argc > 4) {
    fmt::print(stderr,
               "error: arguments: '{}' are not a seed, a number of points from 1 and a file; "
               "usage: kiln_schedule_bench [FIRST_SEED [POINTS [FILE]]]\n",
               fmt::join(argv + 1, argv + argc, " "));
    return 2;
  }
  Known known(argc > 3 ? argv[3] : "");
  std::vector<Regret> regrets(quick ? 4 : count);
  std::mutex printing;
  in_parallel(regrets.size(), quick ? 1 : processors(), [&](std::size_t i) {
    const Point point = point_of(first + i);
    try {
      regrets[i] = regret_of(point, first + i, known, quick);
    } catch (const UserError& error) { // no schedule has LDS for so many rows, say
      regrets[i].text = fmt::format("{}: left out: {}", point.title, error.what());
    }
    const std::lock_guard lock(printing);
    fmt::print("{} {}\n", first + i, regrets[i].text);
    std::fflush(stdout);
  });
  std::erase_if(regrets, [](const Regret& r) { return r.kind.empty(); });
  return print(regrets) || quick ? 0 : 1;
}

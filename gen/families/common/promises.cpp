// Promises of all kernels, and of problems together.
#include "gen/families/common/promises.h"
#include "templates/common/config.h"
#include <algorithm>

namespace kiln {
namespace {

bool lists(const std::vector<std::string>& list, const std::string& text) { return std::ranges::find(list, text) != list.end(); }

// How two fields become one, by the word that machine/promises.def has for it.
namespace rules {

bool both(bool a, bool b) { return a && b; }
int sum(int a, int b) { return a + b; }
// A limit that only one has holds for nobody else.
template <class T, class F> std::optional<T> of_both(std::optional<T> a, std::optional<T> b, F f) {
  return a && b ? std::optional<T>(f(*a, *b)) : std::nullopt;
}
template <class T> std::optional<T> sum(std::optional<T> a, std::optional<T> b) {
  return of_both(a, b, [](T x, T y) { return x + y; });
}
template <class T> std::optional<T> most(std::optional<T> a, std::optional<T> b) {
  return of_both(a, b, [](T x, T y) { return std::max(x, y); });
}
template <class T> std::optional<T> least(std::optional<T> a, std::optional<T> b) {
  return of_both(a, b, [](T x, T y) { return std::min(x, y); });
}
Widths sum(const Widths& a, const Widths& b) {
  if (a.min_bytes == 0 || b.min_bytes == 0) return {};
  return {.min_bytes = std::min(a.min_bytes, b.min_bytes),
          .exceptions = a.exceptions + b.exceptions,
          .at_least = a.at_least + b.at_least,
          .excepted = a.excepted.empty() ? b.excepted : a.excepted};
}
// What holds in a loop of either.
Widths each(const Widths& a, const Widths& b) {
  Widths result = sum(a, b);
  result.exceptions = std::max(a.exceptions, b.exceptions);
  result.at_least = std::min(a.at_least, b.at_least);
  return result;
}
std::vector<std::string> all(std::vector<std::string> a, const std::vector<std::string>& b) {
  std::ranges::copy_if(b, std::back_inserter(a), [had = a](const std::string& each) { return !lists(had, each); });
  return a;
}
std::vector<std::string> common(std::vector<std::string> a, const std::vector<std::string>& b) {
  std::erase_if(a, [&](const std::string& each) { return !lists(b, each); });
  return a;
}
const std::string& same(const std::string& a, const std::string&) { return a; }

} // namespace rules

// Loops are no longer told from other code: what was promised of both holds for all of it.
void forget_loops(Promises& p) {
  if (p.loads_outside_loops.min_bytes > 0) {
    p.global_loads = p.loads_outside_loops;
    p.global_loads.exceptions += p.loop_loads.exceptions;
  }
  p.loads_outside_loops = {};
#define KILN_PROMISE(type, name, together)
#define KILN_LOOP_PROMISE(type, name, together) p.name = {};
#include "machine/promises.def"
}

// A problem without streaming loops of its own has all its code outside of those of others.
void take_loops(Promises& p, const Promises& from) {
  p.loads_outside_loops = p.global_loads;
  p.global_loads = {};
#define KILN_PROMISE(type, name, together)
#define KILN_LOOP_PROMISE(type, name, together) p.name = from.name;
#include "machine/promises.def"
  if (p.min_loops) p.min_loops = 0;
}

} // namespace

Promises promises_of_all() {
  return {.no_scratch = true, .no_spills = true, .forbidden = {"flat_", "ds_bpermute", "ds_permute"}, .no_errata = true};
}

void limit_to_waves_per_eu(Promises& promises, int waves) {
  if (waves > 0) promises.max_vgprs = std::min(promises.max_vgprs.value_or(max_vgprs), vgprs_of_waves_per_eu(waves));
}

Promises together(const Promises& first, const Promises& second) {
  Promises a = first, b = second;
  if (a.in_loops_with.empty() && !b.in_loops_with.empty()) take_loops(a, b);
  else if (b.in_loops_with.empty() && !a.in_loops_with.empty()) take_loops(b, a);
  else if (a.in_loops_with != b.in_loops_with) {
    forget_loops(a);
    forget_loops(b);
  }
  return {
#define KILN_PROMISE(type, name, together) .name = rules::together(a.name, b.name),
#include "machine/promises.def"
  };
}

} // namespace kiln

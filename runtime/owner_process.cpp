// OwnerProcess: forks counted in every child.
#include "runtime/owner_process.h"
#include "gen/error.h"
#include <atomic>
#include <pthread.h>

namespace kiln {
namespace {

std::atomic<std::uint64_t> forks{0}; // between the first process and this one, since Kiln began to count

std::uint64_t counted_forks() {
  static const int counting = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(counting); // ENOMEM at most: then there is no memory for what follows either
  return forks.load(std::memory_order_relaxed);
}

} // namespace

OwnerProcess::OwnerProcess() : forks_(counted_forks()) {}

bool OwnerProcess::is_current() const { return forks_ == forks.load(std::memory_order_relaxed); }

void OwnerProcess::require(const char* subject) const {
  if (is_current()) return;
  throw UserError(subject, "this process inherited it over fork(), without its threads and its worker processes",
                  "make a new one in the child");
}

} // namespace kiln

// KernelTable: one row per key.
#include "runtime/jit/kernel_table.h"
#include <utility>

namespace kiln {

KernelTable::Ticket KernelTable::take(const std::string& key, FinishedFunction finished) {
  Ticket ticket;
  {
    const std::lock_guard lock(mutex_);
    const auto [at, added] = rows_.try_emplace(key);
    Row& row = at->second;
    ticket = {.role = added ? Role::mine : row.settled ? Role::there : Role::joined, .kernel = row.future};
    if (!row.settled) {
      if (finished) row.finished.push_back(std::move(finished));
      return ticket;
    }
  }
  if (finished) finished(false);
  return ticket;
}

// `finished` comes before the future: who waits for that may take away what the callback uses.
void KernelTable::settle(const std::string& key, const Kernel& kernel) {
  std::vector<FinishedFunction> finished;
  std::promise<Kernel> promise;
  {
    const std::lock_guard lock(mutex_);
    Row& row = rows_.at(key);
    finished.swap(row.finished);
    std::swap(promise, row.promise);
    row.settled = true;
  }
  for (const FinishedFunction& call : finished) call(false);
  promise.set_value(kernel);
}

void KernelTable::settle(const std::string& key, const std::exception_ptr& error) {
  std::unordered_map<std::string, Row>::node_type row;
  {
    const std::lock_guard lock(mutex_);
    row = rows_.extract(key);
  }
  for (const FinishedFunction& call : row.mapped().finished) call(true);
  row.mapped().promise.set_exception(error);
}

} // namespace kiln

// KernelTable: the kernels that a Jit has or is making, each made by one asker for all.
#pragma once
#include "runtime/launch/kernel.h"
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kiln {

using FinishedFunction = std::function<void(bool failed)>; // must not throw

// Thread-safe.
class KernelTable {
public:
  enum class Role { there, joined, mine };
  struct Ticket {
    Role role = Role::there;
    std::shared_future<Kernel> kernel; // ready when it is there
  };
  // `there`: the kernel is known. `joined`: somebody makes it. `mine`: this asker makes it, and settle() must follow. `finished`, if
  // any, is called once, before the future is ready: here when it is ready already, else by settle().
  Ticket take(const std::string& key, FinishedFunction finished) {
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

  // Ends the turn of the asker that makes `key`: keeps the kernel, or forgets the key so that the next one tries again. Calls every
  // `finished` of those who asked meanwhile, then makes their future ready: who waits for that may take away what the callback uses.
  void settle(const std::string& key, const Kernel& kernel) {
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

  void settle(const std::string& key, const std::exception_ptr& error) {
    std::unordered_map<std::string, Row>::node_type row;
    {
      const std::lock_guard lock(mutex_);
      row = rows_.extract(key);
    }
    for (const FinishedFunction& call : row.mapped().finished) call(true);
    row.mapped().promise.set_exception(error);
  }

private:
  struct Row {
    std::promise<Kernel> promise;
    std::shared_future<Kernel> future = promise.get_future().share();
    std::vector<FinishedFunction> finished;
    bool settled = false;
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Row> rows_;
};

} // namespace kiln

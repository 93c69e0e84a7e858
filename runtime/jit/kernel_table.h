// KernelTable: the kernels that a Jit has or is making, each made by one asker for all.
#pragma once
#include "runtime/launch/kernel.h"
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <unordered_map>
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
  Ticket take(const std::string& key, FinishedFunction finished);

  // Ends the turn of the asker that makes `key`: keeps the kernel, or forgets the key so that the next one tries again. Calls every
  // `finished` of those who asked meanwhile, then makes their future ready.
  void settle(const std::string& key, const Kernel& kernel);
  void settle(const std::string& key, const std::exception_ptr& error);

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

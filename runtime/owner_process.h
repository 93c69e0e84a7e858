// OwnerProcess: the process that made an object, and whether a fork() has copied the object into another one.
#pragma once
#include <cstdint>

namespace kiln {

// A child of fork() has its parent's memory and none of its threads, and shares its sockets: it must not unlock, join, or end
// what such an object holds. The question costs a load. Counts forks by pthread_atfork, which fork() of libc calls; bare clone()
// does not.
class OwnerProcess {
public:
  OwnerProcess();
  bool is_current() const; // false in every process that inherited the object
  // Throws UserError when another process asks. `subject`: "Jit".
  void require(const char* subject) const;

private:
  std::uint64_t forks_;
};

} // namespace kiln

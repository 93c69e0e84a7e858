// The main function of every test program.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#if defined(__SANITIZE_ADDRESS__)
#include <unistd.h>

// LeakSanitizer asks it before it looks for leaks. A child of fork() has the memory of threads that it does not have, so that what
// they hold would count as leaked.
extern "C" int __lsan_is_turned_off() {
  static const pid_t first = getpid();
  return getpid() == first ? 0 : 1;
}
namespace {
[[maybe_unused]] const int asked_before_any_fork = __lsan_is_turned_off();
}
#endif

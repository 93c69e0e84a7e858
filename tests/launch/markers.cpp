// Markers: which ranges a profiler sees, with a stub in place of roctx; and that nothing is loaded unless asked.
#include "runtime/launch/markers.h"
#include "runtime/compile/loaded_libraries.h"
#include "runtime/jit/jit.h"
#include "tests/errors/expect.h"
#include "tests/launch/loaded.h"
#include <cstdlib>

using namespace kiln;
using kiln::test::fresh_stub;
using kiln::test::HipStub;
using kiln::test::stub_device;

namespace {

struct Variable {
  const char* name;
  Variable(const char* name_, const char* value) : name(name_) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }
};

KernelSpec negated() { return KernelSpec("negated").output("y", f16, -input("x", f16, {dynamic("rows"), 256})); }

// Loads `kernel` on the stub and launches it; the names of the calls that were made.
std::vector<std::string> calls_of_launch(const Kernel& kernel) {
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  const DeviceMemory x = device.allocate(512), y = device.allocate(512);
  stub.calls.clear();
  device.load(kernel).bind({{"x", x.tensor(f16, {1, 256})}, {"y", y.tensor(f16, {1, 256})}}).launch();
  std::erase_if(stub.calls, [](const std::string& call) { return call == "hipGetDevice" || call == "hipSetDevice"; });
  return stub.calls;
}

} // namespace

TEST_CASE("markers: KILN_ROCTX makes ranges of loads and launches") {
  const Variable roctx("KILN_ROCTX", KILN_HIP_STUB);
  CHECK(calls_of_launch(test::compiled(negated())) == std::vector<std::string>{"push kiln load negated", "hipModuleLoadData",
                                                                               "hipModuleGetFunction", "pop", "push kiln launch negated",
                                                                               "hipModuleLaunchKernel", "pop"});
}

TEST_CASE("markers: without the variable nothing is marked, nor loaded") {
  CHECK(calls_of_launch(test::compiled(negated())) ==
        std::vector<std::string>{"hipModuleLoadData", "hipModuleGetFunction", "hipModuleLaunchKernel"});
  CHECK(!Markers("").active());
  CHECK(path_of_loaded("librocprofiler-sdk-roctx.so").empty());
}

TEST_CASE("markers: a compile of a Jit is a range, a hit is none") {
  const HipStub& stub = fresh_stub();
  JitOptions options = jit_options(process_environment());
  options.cache.folder.clear();
  options.compile.environment.roctx = KILN_HIP_STUB;
  Jit jit(target("gfx942"), options);
  static_cast<void>(jit.compile(negated()));
  static_cast<void>(jit.compile(negated()));
  CHECK(stub.calls == std::vector<std::string>{"push kiln compile negated", "pop"});
}

TEST_CASE("markers: a range ends when a launch throws") {
  const Variable roctx("KILN_ROCTX", KILN_HIP_STUB);
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  const DeviceMemory x = device.allocate(512), y = device.allocate(512);
  const BoundKernel bound = device.load(test::compiled(negated())).bind({{"x", x.tensor(f16, {1, 256})}, {"y", y.tensor(f16, {1, 256})}});
  stub.errors["hipModuleLaunchKernel"] = 719;
  stub.calls.clear();
  CHECK_THROWS_AS(bound.launch(), EnvironmentError);
  CHECK(stub.calls.back() == "pop");
}

TEST_CASE("markers: a library that is not there, or is no roctx, is an error with the remedy") {
  const auto error_of = [](const std::string& roctx) {
    try {
      const Markers markers(roctx);
    } catch (const EnvironmentError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(error_of("/nowhere/libroctx64.so").find("KILN_ROCTX") != std::string::npos);
  CHECK(error_of("1").find("rocprofiler-sdk") != std::string::npos);
  CHECK(error_of("/lib/x86_64-linux-gnu/libz.so.1").find("roctxRangePop") != std::string::npos);
}

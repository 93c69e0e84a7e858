// Proves that what cannot be predicted is refused with what is wrong: chips that there are not, an object for another chip, launches that
// do not fit.
#include "gen/catalog/catalog.h"
#include "isa_checks/error.h"
#include "isa_checks/timing/predict.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/record.h"
#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace kiln;

namespace {

// Runs `provoke` and requires an isa::Error whose text has all of `parts`.
template <class Provoke> void expect_error(Provoke provoke, const std::vector<std::string>& parts) {
  try {
    provoke();
  } catch (const isa::Error& error) {
    const std::string what = error.what();
    CAPTURE(what);
    for (const std::string& part : parts) {
      CAPTURE(part);
      CHECK(what.find(part) != what.npos);
    }
    return;
  }
  FAIL_CHECK("no error");
}

} // namespace

TEST_CASE("a chip that there is not is refused with those that there are") {
  expect_error([] { static_cast<void>(timing::chip("mi999")); }, {"chip \"mi999\"", "no such chip", "mi300x", "mi355x"});
  expect_error([] { static_cast<void>(timing::chip("")); }, {"chip \"\"", "mi308x"});
}

TEST_CASE("an object for another chip, and launches that do not fit, are refused") {
  const Target to = target("gfx942");
  CompileOptions compile = own_process_options(process_environment());
  const KernelSpec spec = catalog_spec("rmsnorm", {.cols = 1024});
  const BuiltKernel built = build_kernel(spec, to, compile);
  const isa::CodeObject object = isa::load_code_object(built.object.bytes, built.object.name);
  timing::check_fits(object, timing::chip("mi308x"));
  expect_error([&] { timing::check_fits(object, timing::chip("mi355x")); },
               {"chip mi355x", "it is gfx950, the object is for gfx942", "mi300x, mi308x, mi325x"});

  const auto launch = [&](exec::Grid grid, std::size_t bytes_of_arguments) {
    exec::Memory memory;
    const std::vector<std::byte> arguments(bytes_of_arguments);
    static_cast<void>(timing::record(object, built.source.name, grid, arguments, memory));
  };
  exec::Grid fits;
  fits.workgroups = {1, 1, 1};
  fits.workgroup_size = {static_cast<std::uint32_t>(built.source.launch.workgroup_threads()), 1, 1};
  exec::Grid none = fits;
  none.workgroups[0] = 0;
  expect_error([&] { launch(none, 4096); }, {"no workgroups", "sizes of 1 or more"});
  exec::Grid much_lds = fits;
  much_lds.dynamic_lds = 1 << 20;
  expect_error([&] { launch(much_lds, 4096); }, {"no CU has room", "less LDS"});
  expect_error([&] { launch(fits, 0); }, {"rmsnorm", "argument"}); // the buffers that it loads from are not there
}

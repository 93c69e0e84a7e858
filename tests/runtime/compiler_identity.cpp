// What the key knows of the compiler: every loaded library that makes code, also through the memo, and every variable that was not
// shown to change nothing.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "runtime/cache/compiler_memo.h"
#include "runtime/compile/compile.h"
#include "tests/compile/run_cli.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace compiler_identity_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

// A command in a new process with the stub compiler and the libLLVM in `folder`.
CliResult with_stub(const std::string& arguments, const fs::path& folder) {
  return kiln::test::kiln(arguments, "KILN_HIPRTC_PATH=" KILN_STUB_HIPRTC " KILN_DUMP_DIR=" + folder.string() +
                                         " LD_LIBRARY_PATH=" + folder.string() + ":$LD_LIBRARY_PATH");
}

// The identity that it sees.
std::string identity_with(const fs::path& folder) {
  const CliResult said = with_stub("env --json", folder);
  return nlohmann::json::parse(said.out)["compiler"]["identity"].get<std::string>();
}

std::vector<std::uint8_t> compiled() {
  const Target gpu = target("gfx942");
  const KernelSpec spec = catalog().front().build({.cols = 512, .fp8 = gpu.fp8()});
  const Plan plan = make_plan(spec, gpu);
  CompileOptions options = own_process_options(process_environment());
  return compile(emit_source(plan, choose_schedule(plan, gpu), gpu), gpu, options).bytes;
}

} // namespace

TEST_CASE("what a compiler says of a kernel is printed once, line by line") {
  const Scratch scratch;
  fs::copy_file(KILN_STUB_LLVM_A, scratch.path / fs::path(KILN_STUB_LLVM_A).filename());
  const CliResult failed = with_stub("compile rmsnorm --arch gfx942", scratch.path);
  CHECK(failed.exit_code == 1);
  CAPTURE(failed.err);
  const std::string log = "\nstub.hip:1:2: error: no compiler\n    1 | here\nkiln: note: ";
  const std::size_t end = failed.err.find(log);
  REQUIRE(end != std::string::npos);
  CHECK(failed.err.find("no compiler", end + log.size()) == std::string::npos);
  const std::string first = failed.err.substr(0, end);
  CHECK(first.starts_with("error: kernel rmsnorm: "));
  CHECK(first.find("(stub (6)): stub.hip:1:2: error: no compiler; read the log") != std::string::npos);
  CHECK(first.find('\n') == std::string::npos);
}

TEST_CASE("two builds of a shared libLLVM are two compilers") {
  const Scratch scratch;
  const fs::path here = scratch.path / "lib", library = fs::path(KILN_STUB_LLVM_A).filename();
  fs::create_directory(here);
  fs::copy_file(KILN_STUB_LLVM_A, here / library);
  const std::string first = identity_with(here), again = identity_with(here);
  CHECK(first == again);
  CHECK(first.find("libLLVM-kiln-stub.so aaaaaaaaaaaa") != std::string::npos);
  CHECK(first.find("libc.so") == std::string::npos);
  // The same path and name, as an upgrade of the package leaves it: written beside, renamed.
  fs::copy_file(KILN_STUB_LLVM_B, here / "new");
  fs::rename(here / "new", here / library);
  const std::string second = identity_with(here);
  CHECK(second.find("libLLVM-kiln-stub.so bbbbbbbbbbbb") != std::string::npos);
  CHECK(first != second);
}

TEST_CASE("the memo depends on the file of every library that makes code") {
  const Scratch scratch;
  const CompilerMemo memo(Folder::make(scratch.path / "hosts", Trust::self, 0700));
  Environment environment = process_environment();
  const CompilerParts parts = compiler_parts(environment); // of the real one: its files are what the note depends on
  CHECK(memo.identity(environment) == parts.identity);
  std::string note;
  for (const auto& file : fs::directory_iterator(scratch.path / "hosts")) note = contents(file.path());
  REQUIRE(note.starts_with(parts.identity + "\n"));
  REQUIRE(parts.files.size() >= 2);
  for (const std::string& file : parts.files) CHECK(note.find(file + "\t") != std::string::npos);
}

TEST_CASE("variables that are left out of the key change no byte") {
  setenv("AMD_COMGR_CACHE", "0", 1);
  const std::vector<std::uint8_t> plain = compiled();
  const Scratch scratch;
  for (const std::string_view variable : harmless_variables()) {
    const std::string name(variable);
    CAPTURE(name);
    const char* before = std::getenv(name.c_str());
    const std::string kept = before == nullptr ? "" : before;
    const bool folder = name.ends_with("_DIR"), text = name.ends_with("_POLICY"),
               file = name.ends_with("_LOGS") && name.find("REDIRECT") != std::string::npos;
    const std::string value = folder ? (scratch.path / "comgr").string()
                              : file ? (scratch.path / "log").string()
                              : text ? "prune_after=1h"
                                     : "1";
    setenv(name.c_str(), value.c_str(), 1);
    CHECK(compiled() == plain);
    before == nullptr ? unsetenv(name.c_str()) : setenv(name.c_str(), kept.c_str(), 1);
  }
  for (const char* path : {"HIP_PATH", "ROCM_PATH", "HIP_DEVICE_LIB_PATH", "TMPDIR"}) { // not looked at at all
    CAPTURE(path);
    const char* before = std::getenv(path);
    const std::string kept = before == nullptr ? "" : before;
    setenv(path, scratch.path.c_str(), 1);
    CHECK(compiled() == plain);
    before == nullptr ? unsetenv(path) : setenv(path, kept.c_str(), 1);
  }
  CHECK(may_change_code("AMD_COMGR_SAVE_TEMPS")); // was seen to
  CHECK(may_change_code("HIPRTC_COMPILE_OPTIONS_APPEND"));
  CHECK(may_change_code("CPATH"));
  CHECK_FALSE(may_change_code("PATH"));
}

} // namespace compiler_identity_tests

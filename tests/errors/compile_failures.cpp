// A compiler that fails says why: a missing library, a text that does not compile, a dump that cannot be written.
#include "gen/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/dump.h"
#include "tests/compile/kernels.h"
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace kiln;

namespace {

bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A folder of this test alone, gone at the end.
struct Scratch {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("kiln-test-" + std::to_string(getpid()));
  Scratch() { std::filesystem::create_directory(path); }
  ~Scratch() { std::filesystem::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

CompileOptions options_for(CompilerKind kind, const std::filesystem::path& dumps) {
  CompileOptions options = own_process_options(process_environment());
  options.environment.compiler = kind;
  options.environment.dump_dir = dumps;
  return options;
}

EnvironmentError failure(const KernelSource& source, const CompileOptions& options) {
  try {
    compile(source, target(source.arch), options);
  } catch (const EnvironmentError& error) {
    return error;
  }
  FAIL("expected an EnvironmentError");
  return EnvironmentError("", "", "");
}

} // namespace

TEST_CASE("a missing library is one error that says what was tried and what to do") {
  const std::string arch(known_archs().front());
  const KernelSource source = test::scale_kernel("scale", arch);
  for (const CompilerKind kind : {CompilerKind::hiprtc, CompilerKind::comgr}) {
    CompileOptions options;
    options.environment.compiler = kind;
    options.environment.hiprtc_path = options.environment.comgr_path = "/nowhere/lib.so";
    const EnvironmentError error = failure(source, options);
    const bool hiprtc = kind == CompilerKind::hiprtc;
    CHECK(error.subject == (hiprtc ? "hipRTC" : "comgr"));
    CHECK(mentions(error.fact, "/nowhere/lib.so"));
    CHECK(mentions(error.fact, hiprtc ? "KILN_HIPRTC_PATH" : "KILN_COMGR_PATH"));
    CHECK(mentions(error.remedy, "install"));
    CHECK(mentions(error.log, "No such file"));
  }
}

TEST_CASE("a library that is another one is an error that names the missing function") {
  const std::string arch(known_archs().front());
  CompileOptions options;
  options.environment.hiprtc_path = process_environment().hiprtc_path;
  options.environment.compiler = CompilerKind::hiprtc;
  options.environment.hiprtc_path = "/lib/x86_64-linux-gnu/libc.so.6";
  if (!std::filesystem::exists(options.environment.hiprtc_path)) options.environment.hiprtc_path = "/lib64/libc.so.6";
  const EnvironmentError error = failure(test::scale_kernel("scale", arch), options);
  CHECK(mentions(error.fact, "has no function hiprtcCreateProgram"));
}

TEST_CASE("a text that does not compile leaves its log, source and command") {
  const Scratch scratch;
  const std::string arch(known_archs().back());
  const KernelSource source = test::with_text(test::scale_kernel("broken", arch), "extern \"C\" void broken() { return nonsense; }\n");
  for (const CompilerKind kind : {CompilerKind::hiprtc, CompilerKind::comgr}) {
    CAPTURE(to_string(kind));
    const EnvironmentError error = failure(source, options_for(kind, scratch.path));
    CHECK(error.subject == "kernel broken");
    CHECK(mentions(error.fact, arch));
    CHECK(mentions(error.fact, "nonsense"));
    CHECK(mentions(error.log, "nonsense"));
    CHECK(mentions(error.remedy, error.path));
    CHECK(error.path.starts_with(scratch.path.string()));
    CHECK(read(error.path + "/broken.hip") == source.text);
    CHECK(mentions(read(error.path + "/command.txt"), "--offload-arch=" + arch));
    CHECK(mentions(read(error.path + "/log.txt"), "nonsense"));
    struct stat status{};
    REQUIRE(stat(error.path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
  }
}

TEST_CASE("a dump folder that cannot be written does not hide the compiler's error") {
  const Scratch scratch;
  const std::filesystem::path file = scratch.path / "file";
  std::ofstream(file) << "not a folder";
  const std::string arch(known_archs().front());
  const KernelSource source = test::with_text(test::scale_kernel("broken", arch), "#error on purpose\n");
  const EnvironmentError error = failure(source, options_for(CompilerKind::hiprtc, file));
  CHECK(mentions(error.fact, "on purpose"));
  CHECK(mentions(error.remedy, "is not a folder"));
  CHECK(error.path.empty());
  CHECK_THROWS_AS(write_dump(file, "x", {}), EnvironmentError);
}

TEST_CASE("save_temps leaves source and code object of a compile that went well") {
  const Scratch scratch;
  const std::string arch(known_archs().front());
  CompileOptions options = options_for(CompilerKind::hiprtc, scratch.path / "made" / "here");
  options.environment.save_temps = true;
  const CodeObject object = compile(test::scale_kernel("scale", arch), target(arch), options);
  const std::filesystem::path folder = std::filesystem::directory_iterator(scratch.path / "made" / "here")->path();
  CHECK(read(folder / "scale.co") == std::string(object.bytes.begin(), object.bytes.end()));
  CHECK(read(folder / "scale.hip") == test::scale_kernel("scale", arch).text);
}

// The command line answers wrong input with one line of subject, fact and remedy and exit code 2; 1 when a kernel failed.
#include "tests/compile/run_cli.h"
#include <algorithm>
#include <doctest/doctest.h>

using kiln::test::CliResult;

namespace {

void check_refused(const std::string& arguments, std::string_view part, int exit_code = 2, const std::string& variables = {}) {
  CAPTURE(arguments);
  const CliResult result = kiln::test::kiln(arguments, variables);
  CAPTURE(result.err);
  CHECK(result.exit_code == exit_code);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("error: "));
  CHECK(result.err.find(part) != std::string::npos);
  CHECK(result.err.substr(0, result.err.find('\n')).find("; ") != std::string::npos); // a remedy
  if (exit_code == 2) CHECK(std::ranges::count(result.err, '\n') == 1);
}

} // namespace

TEST_CASE("wrong words on the command line") {
  check_refused("", "command line: ");
  check_refused("compil", "\"compil\" is no command");
  check_refused("list --jsn", "--jsn");
  check_refused("compile softmax --max-row 4", "did you mean '--max-rows'?");
  check_refused("compile softmax --arch gfx942 --col 4", "did you mean '--cols'?");
  check_refused("list softmx", "did you mean 'softmax'?");
  check_refused("cache ls /nowhere/at/all", "there is no folder /nowhere/at/all; name one", 1);
  check_refused("compile softmax --arch gfx942 --emit nonsense", "there is no stage \"nonsense\"");
  check_refused("compile softmax --arch gfx942 --emit object", "name a folder for it with -o");
  check_refused("compile softmax --arch gfx942 --cols many", "many");
}

TEST_CASE("wrong kernels, types and architectures") {
  check_refused("compile softmaxx --arch gfx942", "'softmax'");
  check_refused("compile nowhere.kiln --arch gfx942", "nowhere.kiln");
  check_refused("compile softmax --arch gfx1100", "gfx942");
  check_refused("compile softmax --arch gfx942 --cols 0", "cols is 0");
  check_refused("compile softmax --arch gfx942 --dtype f17", "\"f17\", which is no type");
  check_refused("compile swiglu_quant --arch gfx942 --fp8 e4m3fn", "e4m3fnuz");
  check_refused("compile swiglu_quant --arch gfx950 --fp8 e4m3fnuz", "e4m3fn");
  check_refused("compile softmax --arch gfx942 --set threads_per_row=7", "threads_per_row");
  check_refused("compile softmax --arch gfx942 --set speed=7", "speed");
}

TEST_CASE("wrong files") {
  const kiln::test::Scratch scratch;
  const std::string file = (scratch.path / "bad.kiln").string();
  std::ofstream(file) << "kernel bad {\n  this is no spec\n}\n";
  check_refused("compile " + file + " --arch gfx942", file);
  check_refused("compile " + file + " --arch gfx942 --cols 8", "beside a file");
  check_refused("compile missing.txt --arch gfx942", "file 'missing.txt'");
}

TEST_CASE("wrong environments") {
  check_refused("compile softmax --arch gfx942", "KILN_COMPILER", 2, "KILN_COMPILER=hipcc");
  check_refused("compile softmax --arch gfx942", "/nowhere/lib.so", 1, "KILN_HIPRTC_PATH=/nowhere/lib.so");
  check_refused("compile softmax --arch gfx942 -o /proc/kiln", "/proc/kiln", 1);
}

// kiln eval, from the outside: random inputs, given inputs, statistics.
#include "tests/compile/run_cli.h"
#include <cmath>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using kiln::test::CliResult;

namespace {

nlohmann::json eval(const std::string& arguments) {
  const CliResult result = kiln::test::kiln("eval " + arguments + " --json");
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.out);
}

void check_refused(const std::string& arguments, std::string_view part) {
  const CliResult result = kiln::test::kiln("eval " + arguments);
  CAPTURE(result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(result.err.find(part) != std::string::npos);
}

} // namespace

TEST_CASE("statistics are those of the outputs") {
  const nlohmann::json softmax = eval("softmax --cols 1000 --rows 6 --dtype f32")["y"];
  CHECK(softmax["shape"] == nlohmann::json{6, 1000});
  CHECK(softmax["mean"].get<double>() == doctest::Approx(0.001).epsilon(1e-6)); // each row sums to 1
  CHECK(softmax["min"].get<double>() > 0);
  CHECK(softmax["zero"] == 0);
  // x + 0 * y: the random input itself, of mean 0 and variance 1; 64 rows of 4096 leave 0.002 of doubt.
  const nlohmann::json normal = eval("scaled_add --rows 64 --dtype f32 --scalar alpha=0")["sum"];
  CHECK(std::abs(normal["mean"].get<double>()) < 0.01);
  CHECK(normal["rms"].get<double>() == doctest::Approx(1).epsilon(0.01));
  CHECK(normal["nan"] == 0);
}

TEST_CASE("the seed decides the inputs") {
  CHECK(eval("rmsnorm --seed 7") == eval("rmsnorm --seed 7"));
  CHECK(eval("rmsnorm --seed 7") != eval("rmsnorm --seed 8"));
}

TEST_CASE("inputs and outputs are raw files that can be read back") {
  const kiln::test::Scratch scratch;
  const std::string folder = scratch.path.string();
  const nlohmann::json first = eval("softmax --cols 100 --seed 3 -o " + folder);
  CHECK(std::filesystem::file_size(folder + "/softmax.x.raw") == 4 * 100 * 2);
  CHECK(std::filesystem::file_size(folder + "/softmax.y.raw") == 4 * 100 * 2);
  CHECK(eval("softmax --cols 100 --seed 4 --input x=" + folder + "/softmax.x.raw") == first);
  check_refused("softmax --cols 101 --input x=" + folder + "/softmax.x.raw", "it has 800 bytes");
}

TEST_CASE("what names nothing is refused") {
  check_refused("scaled_add --scalar beta=1", "'beta'");
  check_refused("scaled_add --scalar alpha", "NAME=VALUE");
  check_refused("scaled_add --scalar alpha=two", "\"two\" is not a number");
  check_refused("softmax --input z=/nowhere", "'z'");
  check_refused("softmax --input x=/nowhere", "/nowhere");
  check_refused("softmax --size m=4", "'m'");
  check_refused("softmax --rows -3", "-3");
}

TEST_CASE("zero rows are no error") {
  const nlohmann::json empty = eval("rmsnorm --rows 0");
  CHECK(empty["y"]["shape"] == nlohmann::json{0, 4096});
}

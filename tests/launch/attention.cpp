// Attention on emulated devices: from the catalogue to a launch, and lengths and pages that do not fit, found before the kernel runs.
#include "gen/catalog/catalog.h"
#include "gen/reference/evaluate.h"
#include "gen/reference/random_inputs.h"
#include "tests/launch/loaded.h"
#include <cmath>

using namespace kiln;
using kiln::test::compiled;

namespace {

KernelSpec paged() { return catalog_spec("attention_paged", {.heads = 8, .kv_heads = 2, .d = 64, .length = 96, .page = 16}); }

struct Ran {
  std::vector<std::string> findings;
  Tensor o;
};

// Three sequences, with the tensors of `inputs`.
Ran run(const Inputs& inputs, const std::string& arch) {
  const Device device = Device::emulated(arch);
  const LoadedKernel kernel = device.load(compiled(paged(), arch));
  std::vector<DeviceMemory> memory;
  std::vector<Argument> arguments;
  for (const auto& [name, tensor] : inputs.tensors) {
    memory.push_back(device.upload(tensor, name));
    arguments.emplace_back(name, memory.back().tensor(tensor.dtype(), tensor.shape()));
  }
  const DeviceMemory of_o = device.allocate(3 * 8 * 64 * 2, "o");
  const DeviceTensor o = of_o.tensor(f16, {3, 8, 64});
  arguments.emplace_back("o", o);
  Ran ran{{}, Tensor(f16, {3, 8, 64})};
  try {
    const BoundKernel bound = kernel.bind(arguments);
    for (int replay = 0; replay < 2; ++replay) bound.launch(); // the workspace serves the next launch as it is
    ran.o = device.download(o);
  } catch (const ExecutionError& error) {
    ran.findings = error.findings;
  }
  return ran;
}

Inputs inputs_of(std::vector<std::int64_t> lengths) {
  Inputs inputs = random_inputs(paged(), 7, {.sizes = {{"sequences", 3}, {"pages_of_all", 24}}});
  for (std::int64_t s = 0; s < 3; ++s) {
    inputs.tensors.at("lengths").set_bits(s, static_cast<std::uint64_t>(lengths[static_cast<std::size_t>(s)]));
    for (std::int64_t p = 0; p < 6; ++p) inputs.tensors.at("pages").set_bits(s * 6 + p, static_cast<std::uint64_t>((s * 6 + p) * 5 % 24));
  }
  return inputs;
}

} // namespace

TEST_CASE("attention: a launch gives what the spec means, whatever the lengths are") {
  const Inputs inputs = inputs_of({0, 96, 17});
  const Tensor wanted = evaluate(paged(), inputs).at("o");
  for (const char* arch : {"gfx942", "gfx950"}) {
    CAPTURE(arch);
    const Ran ran = run(inputs, arch);
    CHECK(ran.findings.empty());
    double worst = 0;
    for (std::int64_t i = 0; i < wanted.size(); ++i) worst = std::max(worst, std::abs(double{ran.o.at(i)} - double{wanted.at(i)}));
    CHECK(worst < 0.01); // of numbers up to 3, in f16
  }
}

TEST_CASE("attention: lengths and pages that do not fit are findings, and nothing runs") {
  const auto findings = [](const Inputs& inputs) { return run(inputs, "gfx942").findings; };
  const auto names = [](const std::vector<std::string>& found, const std::string& part) {
    REQUIRE(found.size() == 1);
    CAPTURE(found[0]);
    CHECK(found[0].find(part) != std::string::npos);
  };
  names(findings(inputs_of({5, 97, 1})), "97");
  names(findings(inputs_of({-1, 5, 1})), "-1");
  Inputs missing = inputs_of({5, 40, 1});
  missing.tensors.at("pages").set_bits(6 + 2, static_cast<std::uint64_t>(-1)); // the third page of the second sequence, which it needs
  names(findings(missing), "-1");
  missing.tensors.at("pages").set_bits(6 + 2, 24);
  names(findings(missing), "24");
  missing = inputs_of({5, 32, 1});
  missing.tensors.at("pages").set_bits(6 + 2, static_cast<std::uint64_t>(-1)); // which it does not need
  CHECK(findings(missing).empty());
}

// Emulated device: the program that runs on a GPU, tested without one. The CPU model executes the very code object, so what is
// compared here with the reference is what a GPU would be given; and it knows every allocation.
#include <exception>
#include <fmt/format.h>
#include <kiln/gen/reference/evaluate_bounds.h>
#include <kiln/gen/reference/random_inputs.h>
#include <kiln/kiln.h>

using namespace kiln;

// Part of the engine: it takes whatever device it is given.
Tensor run_softmax(const Device& device, const LoadedKernel& softmax, const Tensor& logits) {
  const DeviceMemory x = device.upload(logits, "logits"), y = device.allocate(x.bytes(), "probabilities");
  const DeviceTensor result = y.tensor(f16, logits.shape());
  softmax.bind({{"x", x.tensor(f16, logits.shape())}, {"y", result}}).launch();
  return device.download(result);
}

int main() try {
  const KernelSpec spec = catalog_spec("softmax", {.cols = 1000, .dtype = f16});
  for (const std::string_view arch : known_archs()) {
    const Device device = Device::emulated(arch);
    Jit jit(device);
    const LoadedKernel softmax = device.load(jit.compile(spec));
    const Inputs inputs = random_inputs(spec, /*seed=*/1, {.dynamic_size = 3});
    const Outputs outputs{{"y", run_softmax(device, softmax, inputs.tensors.at("x"))}};
    const auto wrong = find_mismatch(outputs, evaluate_bounds(spec, inputs));
    fmt::print("{}: {}\n", device.description(), wrong ? to_text(*wrong) : "all values within their bounds");
    if (wrong) return 1;

    // A mistake of the engine that a GPU might not show: a buffer of two rows for a batch of three.
    const DeviceMemory x = device.allocate(3 * 1000 * 2, "logits"), y = device.allocate(2 * 1000 * 2, "probabilities");
    try {
      const DeviceTensor result{.data = y.data(), .dtype = f16, .shape = {3, 1000}};
      softmax.bind({{"x", x.tensor(f16, {3, 1000})}, {"y", result}}).launch();
      return 1;
    } catch (const UserError& error) {
      fmt::print("as it should be: {}\n", error.what());
    }
  }
  return 0;
} catch (const std::exception& error) { // errors say the subject, the fact and the remedy
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}

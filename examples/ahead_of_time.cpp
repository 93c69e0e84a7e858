// Ahead of time: kernels are compiled on a build machine into a folder, and the program that serves never compiles: what the
// folder lacks is an error with the key and the spec. The build machine's part is usually `kiln aot MANIFEST -o FOLDER`.
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <kiln/kiln.h>

using namespace kiln;

int main(int argc, char** argv) try {
  const std::filesystem::path folder =
      std::filesystem::absolute(argc > 1 ? argv[1] : std::filesystem::temp_directory_path() / "kiln-ahead-of-time");
  const Device device = default_device();
  const std::string& arch = device.target().arch();

  // On the build machine, which needs no GPU. A second run finds everything there.
  const std::string manifest = R"({"catalog": "rmsnorm", "cols": [1024, 2048], "dtype": "f16"})";
  const Environment environment = process_environment();
  AotOptions aot;
  aot.output = folder;
  aot.workers = worker_options(environment);
  aot.workers.own_process = true; // only Kiln compiles in this program: arguments may be preloaded
  const AotReport report = run_aot(parse_manifest(manifest, "manifest", ".", {arch}, own_process_options(environment)), aot);
  fmt::print("{} kernels compiled, {} were there\n", report.count(AotStatus::compiled), report.count(AotStatus::cached));
  if (!report.complete()) return 1;

  // The machine where it serves.
  JitOptions options = jit_options(environment);
  options.policy = JitPolicy::cache_only;
  options.cache.layers = {folder};
  options.cache.folder.clear(); // nothing but what was shipped
  Jit jit(device, options);
  const LoadedKernel loaded = device.load(jit.compile(catalog_spec("rmsnorm", {.cols = 2048, .dtype = f16})));
  fmt::print("{} for {} came from a {}\n", loaded.kernel().name(), arch, to_string(loaded.kernel().origin()));
  try {
    static_cast<void>(jit.compile(catalog_spec("rmsnorm", {.cols = 4096, .dtype = f16})));
    return 1;
  } catch (const CacheMiss& miss) {
    fmt::print("as it should be: kernel {} for {} is not there\n", miss.kernel, miss.arch);
  }
  return 0;
} catch (const std::exception& error) { // errors say the subject, the fact and the remedy
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}

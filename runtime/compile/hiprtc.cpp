// Hiprtc: own declarations of the few C functions used, so that no HIP header is needed to build Kiln.
#include "runtime/compile/hiprtc.h"
#include "gen/error.h"
#include "runtime/compile/rocm_folders.h"
#include "runtime/stopwatch.h"
#include <fmt/format.h>
#include <functional>
#include <memory>

namespace kiln {
namespace {

// The C interface of hiprtc.h; unchanged from ROCm 5 to 7.
struct Program; // hiprtcProgram is a pointer to an opaque type
using Result = int;
constexpr Result success = 0, compilation_error = 6;
using CreateFn = Result(Program** program, const char* source, const char* name, int header_count, const char** headers,
                        const char** include_names);
using CompileFn = Result(Program* program, int option_count, const char** options);
using SizeFn = Result(Program* program, std::size_t* size);
using CopyFn = Result(Program* program, char* to);
using DestroyFn = Result(Program** program);
using ErrorStringFn = const char*(Result result);

LibraryRequest request(const std::string& path) {
  return {.subject = "hipRTC",
          .given_path = path,
          .variable = "KILN_HIPRTC_PATH",
          .names = {"libhiprtc.so.7", "libhiprtc.so.6"},
          .folders = rocm_library_folders(),
          .remedy = "install ROCm's hiprtc (Debian: libhiprtc6 or newer, ROCm: hip-runtime-amd), or set "
                    "KILN_HIPRTC_PATH to the file"};
}

std::string describe(const DynamicLibrary& library, Result result) {
  const char* text = library.function<ErrorStringFn>("hiprtcGetErrorString")(result);
  return fmt::format("{} ({})", text == nullptr ? "unknown" : text, result);
}

void check(const DynamicLibrary& library, Result result, const char* call) {
  if (result == success) return;
  throw EnvironmentError("hipRTC", fmt::format("{} failed: {}", call, describe(library, result)),
                         fmt::format("check the installation of {}", library.path()));
}

// hipRTC's two-call protocol for text and code: ask for the size, then for the bytes.
std::string fetch(const DynamicLibrary& library, Program* program, const char* size_call, const char* copy_call) {
  std::size_t size = 0;
  check(library, library.function<SizeFn>(size_call)(program, &size), size_call);
  std::string bytes(size, '\0');
  if (size != 0) check(library, library.function<CopyFn>(copy_call)(program, bytes.data()), copy_call);
  return bytes;
}

std::string fetch_log(const DynamicLibrary& library, Program* program) {
  std::string log = fetch(library, program, "hiprtcGetProgramLogSize", "hiprtcGetProgramLog");
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

using ProgramHandle = std::unique_ptr<Program, std::function<void(Program*)>>;

ProgramHandle create(const DynamicLibrary& library, const CompilerInput& input) {
  // The views of IncludedHeader need not end in a zero, which C asks for.
  std::vector<std::string> owned;
  owned.reserve(2 * input.headers.size()); // no reallocation: pointers into the strings are taken below
  std::vector<const char*> texts, names;
  for (const IncludedHeader& header : input.headers) {
    texts.push_back(owned.emplace_back(header.text).c_str());
    names.push_back(owned.emplace_back(header.name).c_str());
  }
  Program* program = nullptr;
  check(library,
        library.function<CreateFn>("hiprtcCreateProgram")(&program, input.text.c_str(), input.file_name.c_str(),
                                                          static_cast<int>(texts.size()), texts.data(), names.data()),
        "hiprtcCreateProgram");
  auto* destroy = library.function<DestroyFn>("hiprtcDestroyProgram");
  return ProgramHandle(program, [destroy](Program* handle) { destroy(&handle); });
}

} // namespace

Hiprtc::Hiprtc(const std::string& path) : library_(request(path)) {}

void Hiprtc::load_compiler() const {
  // hipRTC refuses an empty text.
  create(library_, {.file_name = "empty.hip", .text = "\n", .headers = {}, .arch = "", .options = {}});
}

CompilerOutput Hiprtc::compile(const CompilerInput& input) const {
  const Stopwatch watch;
  const ProgramHandle program = create(library_, input);
  // --offload-arch is what makes hipRTC work on a machine with no GPU.
  const std::string arch = "--offload-arch=" + input.arch;
  std::vector<const char*> options{arch.c_str()};
  for (const std::string& option : input.options) options.push_back(option.c_str());
  const Result result =
      library_.function<CompileFn>("hiprtcCompileProgram")(program.get(), static_cast<int>(options.size()), options.data());

  CompilerOutput output;
  output.ok = result == success;
  output.status = describe(library_, result);
  if (result == success || result == compilation_error) output.log = fetch_log(library_, program.get());
  if (output.ok) output.code_object = fetch(library_, program.get(), "hiprtcGetCodeSize", "hiprtcGetCode");
  output.stages.push_back({"hipRTC", watch.milliseconds()});
  return output;
}

IncludedHeader replaced_builtin_header() { return {"hiprtc_runtime.h", "#pragma once\n#define KILN_HIPRTC_HEADER_REPLACED 1\n"}; }

bool honours_replaced_header(const Hiprtc& hiprtc, const std::string& arch) {
  const CompilerInput probe{.file_name = "probe.hip",
                            .text = "#ifndef KILN_HIPRTC_HEADER_REPLACED\n#error built-in header\n#endif\n",
                            .headers = {replaced_builtin_header()},
                            .arch = arch,
                            .options = {}};
  return hiprtc.compile(probe).ok;
}

} // namespace kiln

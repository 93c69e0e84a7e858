// Comgr: own declarations of the few C functions used, for the interfaces 2 (ROCm 6) and 3 (ROCm 7).
#include "runtime/compile/comgr.h"
#include "gen/error.h"
#include "runtime/compile/rocm_folders.h"
#include "runtime/stopwatch.h"
#include <cstdint>
#include <fmt/format.h>

namespace kiln {
namespace {

// The C interface of amd_comgr.h. Handles are structs of one 64-bit number, passed by value.
struct Handle {
  std::uint64_t handle;
};
using Status = int;
constexpr Status success = 0;
using VersionFn = void(std::size_t* major, std::size_t* minor);
using StatusStringFn = Status(Status status, const char** text);
using CreateFn = Status(Handle* handle);
using CreateDataFn = Status(int kind, Handle* handle);
using ReleaseFn = Status(Handle handle);
using SetDataFn = Status(Handle data, std::size_t size, const char* bytes);
using SetTextFn = Status(Handle handle, const char* text);
using GetDataFn = Status(Handle data, std::size_t* size, char* bytes);
using SetAddFn = Status(Handle set, Handle data);
using CountFn = Status(Handle set, int kind, std::size_t* count);
using DataOfSetFn = Status(Handle set, int kind, std::size_t index, Handle* data);
using SetIntFn = Status(Handle info, int value);
using SetBoolFn = Status(Handle info, bool value);
using SetOptionsFn = Status(Handle info, const char** options, std::size_t count);
using ActionFn = Status(int action, Handle info, Handle input, Handle result);

namespace data_kind {
constexpr int source = 1, include = 2, log = 5, bitcode = 6, relocatable = 7, executable = 8;
}

// Interface 3 dropped some languages and actions, and the numbers of the others moved.
struct Numbers {
  int hip, none, llvm_ir;                                // languages
  int source_to_bitcode, bitcode_to_object, link_object; // actions
};
constexpr Numbers interface_2{.hip = 4, .none = 0, .llvm_ir = 5, .source_to_bitcode = 2, .bitcode_to_object = 6, .link_object = 9};
constexpr Numbers interface_3{.hip = 3, .none = 0, .llvm_ir = 4, .source_to_bitcode = 2, .bitcode_to_object = 4, .link_object = 7};

LibraryRequest request(const std::string& path) {
  return {.subject = "comgr",
          .given_path = path,
          .variable = "KILN_COMGR_PATH",
          .names = {"libamd_comgr.so.3", "libamd_comgr.so.2"},
          .folders = rocm_library_folders(),
          .remedy = "install ROCm's comgr (Debian: libamd-comgr3, ROCm: comgr), or set KILN_COMGR_PATH to the file"};
}

std::string describe(const DynamicLibrary& library, Status status) {
  const char* text = nullptr;
  library.function<StatusStringFn>("amd_comgr_status_string")(status, &text);
  return fmt::format("{} ({})", text == nullptr ? "unknown" : text, status);
}

void check(const DynamicLibrary& library, Status status, const char* call) {
  if (status == success) return;
  throw EnvironmentError("comgr", fmt::format("{} failed: {}", call, describe(library, status)),
                         fmt::format("check the installation of {}", library.path()));
}

// A comgr handle and the call that gives it back.
class Owned {
public:
  Owned(const DynamicLibrary& library, Handle handle, const char* release)
      : handle_(handle), release_(library.function<ReleaseFn>(release)) {}
  Owned(Owned&& other) noexcept : handle_(other.handle_), release_(other.release_) { other.release_ = nullptr; }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Owned& operator=(Owned&&) = delete;
  ~Owned() {
    if (release_ != nullptr) release_(handle_);
  }
  Handle get() const { return handle_; }

private:
  Handle handle_;
  ReleaseFn* release_;
};

Owned new_set(const DynamicLibrary& library) {
  Handle handle{};
  check(library, library.function<CreateFn>("amd_comgr_create_data_set")(&handle), "amd_comgr_create_data_set");
  return Owned(library, handle, "amd_comgr_destroy_data_set");
}

void add(const DynamicLibrary& library, const Owned& set, int kind, std::string_view name, std::string_view bytes) {
  Handle handle{};
  check(library, library.function<CreateDataFn>("amd_comgr_create_data")(kind, &handle), "amd_comgr_create_data");
  const Owned data(library, handle, "amd_comgr_release_data");
  check(library, library.function<SetDataFn>("amd_comgr_set_data")(handle, bytes.size(), bytes.data()), "amd_comgr_set_data");
  check(library, library.function<SetTextFn>("amd_comgr_set_data_name")(handle, std::string(name).c_str()), "amd_comgr_set_data_name");
  check(library, library.function<SetAddFn>("amd_comgr_data_set_add")(set.get(), handle), "amd_comgr_data_set_add");
}

// The bytes of all data of one kind in a set, one after the other.
std::string collect(const DynamicLibrary& library, const Owned& set, int kind) {
  std::size_t count = 0;
  check(library, library.function<CountFn>("amd_comgr_action_data_count")(set.get(), kind, &count), "amd_comgr_action_data_count");
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    Handle handle{};
    check(library, library.function<DataOfSetFn>("amd_comgr_action_data_get_data")(set.get(), kind, i, &handle),
          "amd_comgr_action_data_get_data");
    const Owned data(library, handle, "amd_comgr_release_data");
    const auto get = library.function<GetDataFn>("amd_comgr_get_data");
    std::size_t size = 0;
    check(library, get(handle, &size, nullptr), "amd_comgr_get_data");
    std::string bytes(size, '\0');
    if (size != 0) check(library, get(handle, &size, bytes.data()), "amd_comgr_get_data");
    all += bytes;
  }
  return all;
}

struct Stage {
  const char* name;
  int action, language, result_kind;
  std::vector<std::string> options;
};

Owned new_action(const DynamicLibrary& library, const std::string& arch, const Stage& stage) {
  Handle handle{};
  check(library, library.function<CreateFn>("amd_comgr_create_action_info")(&handle), "amd_comgr_create_action_info");
  Owned info(library, handle, "amd_comgr_destroy_action_info");
  check(library, library.function<SetIntFn>("amd_comgr_action_info_set_language")(handle, stage.language),
        "amd_comgr_action_info_set_language");
  const std::string isa = "amdgcn-amd-amdhsa--" + arch;
  check(library, library.function<SetTextFn>("amd_comgr_action_info_set_isa_name")(handle, isa.c_str()),
        "amd_comgr_action_info_set_isa_name");
  std::vector<const char*> options;
  for (const std::string& option : stage.options) options.push_back(option.c_str());
  check(library, library.function<SetOptionsFn>("amd_comgr_action_info_set_option_list")(handle, options.data(), options.size()),
        "amd_comgr_action_info_set_option_list");
  check(library, library.function<SetBoolFn>("amd_comgr_action_info_set_logging")(handle, true), "amd_comgr_action_info_set_logging");
  return info;
}

// Runs one stage on `input` and returns its result set; adds time, log and status to `output`.
Owned run(const DynamicLibrary& library, const std::string& arch, const Stage& stage, const Owned& input, CompilerOutput& output) {
  const Stopwatch watch;
  const Owned info = new_action(library, arch, stage);
  Owned result = new_set(library);
  const Status status = library.function<ActionFn>("amd_comgr_do_action")(stage.action, info.get(), input.get(), result.get());
  output.ok = status == success;
  output.status = fmt::format("{}: {}", stage.name, describe(library, status));
  output.log += collect(library, result, data_kind::log);
  output.stages.push_back({stage.name, watch.milliseconds()});
  return result;
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// The options that the optimiser and the code generator take: -O3, -fno-slp-vectorize, -ffp-contract=fast
// (which decides about fused operations down in instruction selection), and what follows -mllvm. Language and warnings are the
// front end's.
std::vector<std::string> back_end_options(const std::vector<std::string>& options) {
  std::vector<std::string> taken;
  for (const std::string& option : options) {
    const bool of_llvm = !taken.empty() && taken.back() == "-mllvm";
    if (of_llvm || option.starts_with("-O") || option.starts_with("-f") || option.starts_with("-m")) taken.push_back(option);
  }
  return taken;
}

Numbers numbers_of(const DynamicLibrary& library) {
  std::size_t major = 0, minor = 0;
  library.function<VersionFn>("amd_comgr_get_version")(&major, &minor);
  if (major == 2) return interface_2;
  if (major == 3) return interface_3;
  throw EnvironmentError("comgr", fmt::format("{} has interface {}.{}", library.path(), major, minor),
                         "install a comgr with interface 2 or 3 (ROCm 6.2 to 7.x), or set KILN_COMPILER=hiprtc");
}

} // namespace

Comgr::Comgr(const std::string& path) : library_(request(path)) {}

CompilerOutput Comgr::compile(const CompilerInput& input) const {
  const Numbers numbers = numbers_of(library_);
  // The optimiser runs once, in the second stage; so the first one is the front end and nothing else.
  const Stage stages[] = {
      {"source to bitcode", numbers.source_to_bitcode, numbers.hip, data_kind::bitcode,
       joined({"-nogpulib", "-nogpuinc", "-Xclang", "-disable-llvm-passes"}, input.options)},
      {"bitcode to object", numbers.bitcode_to_object, numbers.llvm_ir, data_kind::relocatable, back_end_options(input.options)},
      {"object to executable", numbers.link_object, numbers.none, data_kind::executable, {}},
  };

  Owned source = new_set(library_);
  add(library_, source, data_kind::source, input.file_name, input.text);
  for (const IncludedHeader& header : input.headers) add(library_, source, data_kind::include, header.name, header.text);

  CompilerOutput output;
  Owned bitcode = run(library_, input.arch, stages[0], source, output);
  if (!output.ok) return output;
  Owned object = run(library_, input.arch, stages[1], bitcode, output);
  if (!output.ok) return output;
  Owned executable = run(library_, input.arch, stages[2], object, output);
  if (output.ok) output.code_object = collect(library_, executable, data_kind::executable);
  return output;
}

} // namespace kiln

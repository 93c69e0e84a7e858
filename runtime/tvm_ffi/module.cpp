// libkiln_tvm_ffi.so: manifests, cache folders and specs as modules of tvm-ffi. docs/tvm_ffi.md is the guide.
//   tvm_ffi.load_module("libkiln_tvm_ffi.so")["load_module"]("kernels/", "")["add_rmsnorm_quant"](x, ..., out)
#include "gen/error.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/device.h"
#include "runtime/tvm_ffi/kernel_set.h"
#include <algorithm>
#include <dlpack/dlpack.h>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <variant>
#include <vector>

namespace kiln::tvm {
namespace {

namespace ffi = ::tvm::ffi;

DType dtype_of(const DLDataType& type, const std::string& subject) {
  struct Row {
    int code, bits;
    DType type;
  };
  static constexpr Row rows[] = {{kDLFloat, 32, f32},
                                 {kDLFloat, 16, f16},
                                 {kDLBfloat, 16, bf16},
                                 {kDLFloat8_e4m3fn, 8, e4m3fn},
                                 {kDLFloat8_e4m3fnuz, 8, e4m3fnuz},
                                 {kDLFloat8_e5m2, 8, e5m2},
                                 {kDLFloat8_e5m2fnuz, 8, e5m2fnuz},
                                 {kDLFloat4_e2m1fn, 4, e2m1},
                                 {kDLFloat8_e8m0fnu, 8, e8m0},
                                 {kDLInt, 32, i32},
                                 {kDLInt, 64, i64},
                                 {kDLInt, 8, i8},
                                 {kDLUInt, 8, u8},
                                 {kDLBool, 8, boolean}};
  for (const Row& row : rows)
    if (type.code == row.code && type.bits == row.bits && (type.lanes == 1 || (row.type == e2m1 && type.lanes == 2))) return row.type;
  throw UserError(subject, fmt::format("its type (code {}, {} bits, {} lanes) is none of Kiln's", type.code, type.bits, type.lanes),
                  "convert it; docs/guide.md lists the types");
}

// Two elements of e2m1 may be one of DLPack's, of two lanes.
std::vector<std::int64_t> shape_of(const DLTensor& tensor) {
  std::vector<std::int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.dtype.lanes == 2 && !shape.empty()) shape.back() *= 2;
  return shape;
}

DeviceTensor tensor_of(const DLTensor& given, const std::string& subject) {
  if (given.dtype.lanes == 2 && given.strides != nullptr)
    for (int i = given.ndim - 1, expected = 1; i >= 0; expected *= static_cast<int>(given.shape[i--]))
      if (given.shape[i] > 1 && given.strides[i] != expected)
        throw UserError(subject, "elements in pairs lie with gaps between rows", "make it contiguous");
  const std::vector<std::int64_t> shape = shape_of(given);
  const bool has_strides = given.strides != nullptr && given.dtype.lanes == 1;
  return strided_tensor(static_cast<std::byte*>(given.data) + given.byte_offset, dtype_of(given.dtype, subject), shape,
                        {given.strides, has_strides ? shape.size() : 0}, subject);
}

JitOptions options_for(const std::filesystem::path& path) {
  JitOptions options = jit_options(process_environment());
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return options;
  options.policy = JitPolicy::cache_only;
  options.manifest.clear();
  options.cache.layers.insert(options.cache.layers.begin(), path);
  return options;
}

using CallArgument = std::variant<const DLTensor*, double>;

// Calls of a KernelSet's functions with tensors of DLPack. Thread-safe.
class Caller {
public:
  // `device`: "hip:0" or "emulated:gfx942"; empty: what KILN_DEVICE says. For a folder nothing is ever compiled, for a manifest what
  // KILN_JIT_POLICY allows. Throws what read_kernels and Device::open throw.
  Caller(const std::filesystem::path& path, const std::string& device)
      : device_(device.empty() ? default_device() : Device::open(device)),
        set_(read_kernels(path, device_.target(), own_process_options(process_environment()))), jit_(device_, options_for(path)) {}

  const KernelSet& kernels() const { return set_; }

  // What calls would compile, now. Throws what Jit::compile throws.
  void compile_all() {
    for (const auto& [name, variants] : set_.variants)
      for (const Variant& variant : variants) static_cast<void>(jit_.compile_async(variant.spec, variant.overrides));
    for (const auto& [name, variants] : set_.variants)
      for (const Variant& variant : variants) static_cast<void>(device_.load(jit_.compile(variant.spec, variant.overrides)));
  }

  // On a GPU the tensors' own, on the stream that `stream_of(number of the device)` gives. Nothing waits for it, nothing is copied, and a
  // graph may capture it once the kernel was called, or compile_all. On an emulated device the tensors are in host memory, and are
  // copied there and back. Throws UserError, and what compiling, loading and launching throw.
  void call(const std::string& kernel, std::span<const CallArgument> arguments, const std::function<void*(int)>& stream_of) {
    const auto found = set_.variants.find(kernel);
    if (found == set_.variants.end()) throw UserError("kernel " + kernel, "the module has none of this name", "ask it for another one");
    std::vector<Given> given;
    const DLTensor* first = nullptr;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto* tensor = std::get_if<const DLTensor*>(&arguments[i]);
      if (tensor == nullptr) {
        given.push_back({.is_tensor = false});
        continue;
      }
      const std::string subject = fmt::format("kernel {}, argument {}", kernel, i + 1);
      given.push_back({.dtype = dtype_of((*tensor)->dtype, subject), .shape = shape_of(**tensor)});
      if (first == nullptr) first = *tensor;
      if ((*tensor)->device.device_type != first->device.device_type || (*tensor)->device.device_id != first->device.device_id)
        throw UserError(subject, "it lies on another device than the first tensor", "give tensors of one device");
    }
    const Variant& variant = choose(kernel, found->second, given);
    if (first == nullptr) throw InternalError(fmt::format("kernel {} has no tensor", kernel));
    const Device device = device_of(first->device);
    const LoadedKernel loaded = device.load(jit_.compile(variant.spec, variant.overrides));
    std::vector<Argument> list;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string& name = variant.parameters[i].name;
      if (const auto* tensor = std::get_if<const DLTensor*>(&arguments[i]))
        list.emplace_back(name, tensor_of(**tensor, fmt::format("kernel {}, argument {}", kernel, name)));
      else list.emplace_back(name, std::get<double>(arguments[i]));
    }
    if (device.is_emulated()) run_emulated(loaded, variant, std::move(list));
    else loaded.bind(list).launch(stream_of(first->device.device_id));
  }

private:
  Device device_of(const DLDevice& where) {
    if (device_.is_emulated()) {
      if (where.device_type == kDLCPU) return device_;
      throw UserError("tensor",
                      fmt::format("it lies on a device of DLPack's type {}, and the module is for {}", static_cast<int>(where.device_type),
                                  device_.description()),
                      "give tensors in host memory to an emulated device");
    }
    if (where.device_type != kDLROCM)
      throw UserError("tensor", fmt::format("it lies on a device of DLPack's type {}", static_cast<int>(where.device_type)),
                      "give tensors in the memory of an AMD GPU (kDLROCM), or load the module for an emulated device");
    const std::lock_guard lock(mutex_);
    const auto found = gpus_.find(where.device_id);
    return found != gpus_.end() ? found->second : gpus_.emplace(where.device_id, Device::hip(where.device_id)).first->second;
  }

  void run_emulated(const LoadedKernel& kernel, const Variant& variant, std::vector<Argument> arguments) const {
    std::vector<DeviceMemory> memory;
    std::vector<std::pair<std::span<std::byte>, const void*>> results;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      auto* const tensor = std::get_if<DeviceTensor>(&arguments[i].value);
      if (tensor == nullptr) continue;
      const std::span host(static_cast<std::byte*>(tensor->data), static_cast<std::size_t>(tensor->bytes()));
      memory.push_back(device_.allocate(host.size(), arguments[i].name));
      tensor->data = memory.back().data();
      const bool is_input = std::ranges::any_of(variant.spec.inputs(), [&](const Expr& input) { return input->name == arguments[i].name; });
      if (is_input || tensor->row_stride != 0) device_.copy_to_device(tensor->data, host); // what lies between rows comes back as it was
      if (variant.parameters[i].is_written) results.emplace_back(host, tensor->data);
    }
    kernel.bind(arguments).launch();
    for (const auto& [host, at] : results) device_.copy_to_host(host, at);
  }

  Device device_;
  KernelSet set_;
  Jit jit_;
  std::mutex mutex_;
  std::map<int, Device> gpus_; // by number
};

// Errors of tvm-ffi that Python has by these names.
template <class Work> auto translated(Work&& work) {
  try {
    return work();
  } catch (const UserError& error) {
    throw ffi::Error("ValueError", error.what(), "");
  } catch (const ffi::Error&) {
    throw;
  } catch (const CacheMiss& error) {
    throw ffi::Error("KeyError", error.what(), "");
  } catch (const std::bad_alloc&) {
    throw ffi::Error("MemoryError", "Kiln: there is no memory left", "");
  } catch (const std::exception& error) {
    throw ffi::Error("RuntimeError", error.what(), "");
  }
}

CallArgument argument_of(const ffi::AnyView& given, const std::string& kernel, int number) {
  if (const auto tensor = given.try_cast<DLTensor*>()) return *tensor;
  if (const auto value = given.try_cast<double>()) return *value;
  throw ffi::Error("TypeError",
                   "kernel " + kernel + ", argument " + std::to_string(number + 1) + ": it is " + given.GetTypeKey() +
                       "; give a tensor or a number",
                   "");
}

class KernelModule final : public ffi::ModuleObj {
public:
  KernelModule(const std::string& path, const std::string& device) : caller_(std::make_shared<Caller>(path, device)) {}
  const char* kind() const final { return "kiln"; }
  int GetPropertyMask() const final { return ffi::Module::kRunnable; }

  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) final {
    if (name == "kiln.names") return ffi::Function::FromTyped([caller = caller_] { return names(*caller); });
    if (name == "kiln.compile_all") return ffi::Function::FromTyped([caller = caller_] { translated([&] { caller->compile_all(); }); });
    if (!caller_->kernels().variants.contains(name)) return std::nullopt;
    return ffi::Function::FromPacked([caller = caller_, kernel = std::string(name)](ffi::PackedArgs given, ffi::Any* /*result*/) {
      std::vector<CallArgument> arguments;
      for (int i = 0; i < given.size(); ++i) arguments.push_back(argument_of(given[i], kernel, i));
      translated([&] { caller->call(kernel, arguments, [](int device) { return TVMFFIEnvGetStream(kDLROCM, device); }); });
    });
  }

  ffi::Optional<ffi::String> GetFunctionDoc(const ffi::String& name) final {
    const auto found = caller_->kernels().variants.find(name);
    if (found == caller_->kernels().variants.end()) return std::nullopt;
    std::string text;
    for (const Variant& variant : found->second) text += signature(variant) + "\n";
    return ffi::String(text);
  }

private:
  static ffi::Array<ffi::String> names(const Caller& caller) {
    ffi::Array<ffi::String> list;
    for (const auto& [name, variants] : caller.kernels().variants) list.push_back(name);
    return list;
  }

  std::shared_ptr<Caller> caller_; // functions outlive the module
};

ffi::Module load_module(const ffi::String& path, const ffi::String& device) {
  return translated([&] { return ffi::Module(ffi::make_object<KernelModule>(std::string(path), std::string(device))); });
}

// load_module("norm.kiln") of tvm-ffi itself finds this by the file's ending.
ffi::Module load_file(const ffi::String& path, const ffi::String& /*ending*/) { return load_module(path, ""); }

TVM_FFI_STATIC_INIT_BLOCK() {
  ffi::reflection::GlobalDef().def("kiln.load_module", load_module).def("ffi.Module.load_from_file.kiln", load_file);
}

} // namespace
} // namespace kiln::tvm

TVM_FFI_DLL_EXPORT_TYPED_FUNC(load_module, kiln::tvm::load_module)

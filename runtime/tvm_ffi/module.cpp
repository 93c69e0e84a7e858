// libkiln_tvm_ffi.so: manifests, cache folders and specs as modules of tvm-ffi. docs/tvm_ffi.md is the guide.
//   tvm_ffi.load_module("libkiln_tvm_ffi.so")["load_module"]("kernels/", "")["add_rmsnorm_quant"](x, ..., out)
#include "gen/error.h"
#include "runtime/tvm_ffi/call.h"
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

namespace kiln::tvm {
namespace {

namespace ffi = ::tvm::ffi;

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

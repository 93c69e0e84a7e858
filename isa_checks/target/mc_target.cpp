// Creating LLVM's machine-code objects, for LLVM 20 to 22.
#include "isa_checks/target/mc_target.h"
#include "isa_checks/error.h"
#include <llvm/Config/llvm-config.h>
#include <mutex>
#include <string>

extern "C" { // the AMDGPU part of llvm/Support/TargetSelect.h, which would pull in every target of this LLVM
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
void LLVMInitializeAMDGPUAsmParser();
}

namespace kiln::isa {
namespace {

// LLVM's target registry is a global list that must be filled by one thread, once.
void register_backend() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
    LLVMInitializeAMDGPUAsmParser();
  });
}

// LLVM 22 moved these from a triple's text to Triple. Templates, because a discarded branch is only skipped in one.
template <class Registry> const llvm::Target* lookup(const llvm::Triple& triple, std::string& error) {
  if constexpr (requires { Registry::lookupTarget(triple, error); }) return Registry::lookupTarget(triple, error);
  else return Registry::lookupTarget(triple.str(), error);
}
template <class Target> llvm::MCRegisterInfo* make_registers(const Target& target, const llvm::Triple& triple) {
  if constexpr (requires { target.createMCRegInfo(triple); }) return target.createMCRegInfo(triple);
  else return target.createMCRegInfo(triple.str());
}
template <class Target>
llvm::MCAsmInfo* make_asm_info(const Target& target, const llvm::MCRegisterInfo& registers, const llvm::Triple& triple,
                               const llvm::MCTargetOptions& options) {
  if constexpr (requires { target.createMCAsmInfo(registers, triple, options); }) return target.createMCAsmInfo(registers, triple, options);
  else return target.createMCAsmInfo(registers, triple.str(), options);
}
template <class Target>
llvm::MCSubtargetInfo* make_subtarget(const Target& target, const llvm::Triple& triple, llvm::StringRef cpu, llvm::StringRef features) {
  if constexpr (requires { target.createMCSubtargetInfo(triple, cpu, features); })
    return target.createMCSubtargetInfo(triple, cpu, features);
  else return target.createMCSubtargetInfo(triple.str(), cpu, features);
}

} // namespace

McTarget::McTarget(const TargetFacts& facts, const std::string& features) : triple("amdgcn-amd-amdhsa") {
  register_backend();
  const std::string remedy = "link Kiln with an LLVM 20 to 22 that has the AMDGPU back end";
  std::string error;
  target = lookup<llvm::TargetRegistry>(triple, error);
  if (!target) throw Error("LLVM " LLVM_VERSION_STRING, "it has no AMDGPU back end: " + error, remedy);
  registers.reset(make_registers(*target, triple));
  asm_info.reset(make_asm_info(*target, *registers, triple, options));
  instructions.reset(target->createMCInstrInfo());
  subtarget.reset(make_subtarget(*target, triple, facts.name, features));
  if (!registers || !asm_info || !instructions || !subtarget)
    throw Error("LLVM " LLVM_VERSION_STRING, "its AMDGPU back end is incomplete", remedy);
  if (!subtarget->isCPUStringValid(facts.name))
    throw Error("LLVM " LLVM_VERSION_STRING, "it does not know " + std::string(facts.name), remedy);
}

} // namespace kiln::isa

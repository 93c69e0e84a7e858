// McTarget: LLVM's machine-code objects for one architecture. Internal: includes LLVM headers, public headers do not.
#pragma once
#include "isa_checks/target/target_table.h"
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Triple.h>
#include <memory>
#include <string>

namespace kiln::isa {

// Not shared between threads: LLVM's objects are immutable after this, but contexts built on them are not.
struct McTarget {
  // `features` is LLVM's feature string ("+xnack,-sramecc"). Throws Error when this LLVM lacks the AMDGPU back end or the
  // architecture.
  explicit McTarget(const TargetFacts& facts, const std::string& features = {});
  llvm::Triple triple;
  const llvm::Target* target = nullptr;
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> asm_info;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
};

} // namespace kiln::isa

// Assembling with LLVM MC.
#include "isa_checks/decode/assembler.h"
#include "isa_checks/error.h"
#include "isa_checks/target/mc_target.h"
#include <llvm/ADT/SmallVector.h>
#include <llvm/MC/MCAsmBackend.h>
#include <llvm/MC/MCCodeEmitter.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCObjectFileInfo.h>
#include <llvm/MC/MCObjectWriter.h>
#include <llvm/MC/MCParser/MCAsmParser.h>
#include <llvm/MC/MCParser/MCTargetAsmParser.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

namespace kiln::isa {
namespace {

void collect(const llvm::SMDiagnostic& diagnostic, void* log) {
  llvm::raw_string_ostream stream(*static_cast<std::string*>(log));
  diagnostic.print(nullptr, stream, /*ShowColors=*/false);
}

// ":sramecc+:xnack-" as LLVM's feature string: "+sramecc,-xnack".
std::string feature_string(std::string_view id) {
  std::string features;
  while (!id.empty()) {
    id.remove_prefix(1); // the colon
    const std::string_view one = id.substr(0, id.find(':'));
    id.remove_prefix(one.size());
    if (one.size() > 1 && (one.back() == '+' || one.back() == '-'))
      features += (features.empty() ? "" : ",") + std::string(1, one.back()) + std::string(one.substr(0, one.size() - 1));
  }
  return features;
}

void make_line_tables(llvm::MCContext& context, llvm::StringRef text, const std::string& name) {
  context.setGenDwarfForAssembly(true);
  context.setDwarfVersion(5);
  context.setCompilationDir("."); // with an empty one LLVM takes the slash off an absolute name
  context.setMainFileName(name);
  context.setGenDwarfRootFile(name, text);
}

} // namespace

Bytes assemble(std::string_view text, const TargetFacts& target, const std::string& name, const AssembleOptions& options) {
  const McTarget mc(target, feature_string(options.features));
  std::string log;
  llvm::SourceMgr sources;
  sources.setDiagHandler(collect, &log);
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(text.data(), text.size()), name), llvm::SMLoc());
  llvm::MCContext context(mc.triple, mc.asm_info.get(), mc.registers.get(), mc.subtarget.get(), &sources, &mc.options);
  context.setDiagnosticHandler([&log](const llvm::SMDiagnostic& diagnostic, bool, const llvm::SourceMgr&,
                                      std::vector<const llvm::MDNode*>&) { collect(diagnostic, &log); });
  const std::unique_ptr<llvm::MCObjectFileInfo> file_info(mc.target->createMCObjectFileInfo(context, /*PIC=*/true));
  context.setObjectFileInfo(file_info.get());
  if (options.line_tables) make_line_tables(context, llvm::StringRef(text.data(), text.size()), name);

  llvm::SmallVector<char, 4096> object;
  llvm::raw_svector_ostream stream(object);
  std::unique_ptr<llvm::MCAsmBackend> backend(mc.target->createMCAsmBackend(*mc.subtarget, *mc.registers, mc.options));
  std::unique_ptr<llvm::MCObjectWriter> writer = backend->createObjectWriter(stream);
  std::unique_ptr<llvm::MCCodeEmitter> emitter(mc.target->createMCCodeEmitter(*mc.instructions, context));
  const std::unique_ptr<llvm::MCStreamer> streamer(
      mc.target->createMCObjectStreamer(mc.triple, context, std::move(backend), std::move(writer), std::move(emitter), *mc.subtarget));
  const std::unique_ptr<llvm::MCAsmParser> parser(llvm::createMCAsmParser(sources, context, *streamer, *mc.asm_info));
  const std::unique_ptr<llvm::MCTargetAsmParser> target_parser(
      mc.target->createMCAsmParser(*mc.subtarget, *parser, *mc.instructions, mc.options));
  if (!target_parser) throw Error("LLVM", "its AMDGPU back end has no assembler", "link Kiln with a complete LLVM 20 to 22");
  parser->setTargetParser(*target_parser);
  if (parser->Run(/*NoInitialTextSection=*/false) || context.hadError())
    throw Error(name, "it does not assemble for " + std::string(target.name) + ":\n" + log, "mend the lines named above");
  return Bytes(object.begin(), object.end());
}

} // namespace kiln::isa

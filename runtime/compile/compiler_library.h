// CompilerInput, CompilerOutput: a compile as a compiler library (hipRTC, comgr) takes and gives it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct IncludedHeader {
  std::string_view name; // as in #include: "common/platform.h"
  std::string_view text;
};

struct CompilerInput {
  std::string file_name; // in diagnostics: "rmsnorm.hip"
  std::string text;
  std::vector<IncludedHeader> headers; // found by #include <> and ""
  std::string arch;                    // "gfx942"
  std::vector<std::string> options;    // clang options, architecture not included
};

struct CompilerStage {
  std::string name;        // "source to bitcode"
  double milliseconds = 0; // wall time of the library's call
};

struct CompilerOutput {
  bool ok = false;
  std::string code_object; // an ELF file; empty when not ok
  std::string log;         // diagnostics; may hold warnings when ok
  std::string status;      // the library's word for what happened: "HIPRTC_ERROR_COMPILATION (6)"
  std::vector<CompilerStage> stages;
};

} // namespace kiln

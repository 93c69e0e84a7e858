// compile: HIP text to a code object, through hipRTC or comgr.
#include "runtime/compile/compile.h"
#include "gen/emit/includes.h"
#include "gen/emit/templates.h"
#include "gen/error.h"
#include "runtime/compile/comgr.h"
#include "runtime/compile/comgr_cache.h"
#include "runtime/compile/dump.h"
#include "runtime/compile/hiprtc.h"
#include "runtime/compile/loaded_libraries.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace kiln {
namespace {

struct Compiled {
  std::string identity;
  CompilerOutput output;
};

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// Twelve digits of each build tell builds apart and still fit a line.
CompilerParts parts_of(std::string_view kind, const std::string& path) {
  const std::string own = file_name(path);
  CompilerParts parts{.identity = fmt::format("{} {}", kind, own), .files = {}};
  std::string others;
  for (const LoadedLibrary& library : loaded_closure({own.substr(0, own.find(".so")) + ".so", "libhiprtc-builtins", "libamd_comgr."})) {
    parts.files.push_back(library.path);
    const std::string build = library.build.substr(0, 12);
    if (library.path == path) parts.identity += " " + build;
    else others += fmt::format(", {} {}", library.name, build);
  }
  parts.identity += others;
  return parts;
}

CompilerParts parts_of(const Hiprtc& hiprtc) {
  // hipRTC loads comgr, where the compiler itself lives, with its first program.
  hiprtc.load_compiler();
  return parts_of("hiprtc", hiprtc.path());
}

CompilerParts parts_of(const Comgr& comgr) { return parts_of("comgr", comgr.path()); }

// LLVM ends the process at an option that it does not know, so the option goes where no library holds its name. Returns what the log
// says of it.
std::string drop_unknown_options(CompilerInput& input, const CompilerParts& parts) {
  const auto option = std::ranges::find(input.options, preload_option);
  if (option == input.options.end() || any_holds(parts.files, preload_option_name)) return {};
  input.options.erase(option - 1, option + 1);
  return fmt::format("kiln: note: {} has no option {}, so the kernel loads its arguments\n", parts.identity, preload_option);
}

Compiled run_compiler(const Environment& environment, CompilerInput& input) {
  const auto run = [&input](const auto& compiler) -> Compiled {
    const CompilerParts parts = parts_of(compiler);
    const std::string note = drop_unknown_options(input, parts);
    Compiled compiled{parts.identity, compiler.compile(input)};
    if (!note.empty() && !compiled.output.log.empty()) compiled.output.log += '\n';
    compiled.output.log += note;
    return compiled;
  };
  if (environment.compiler == CompilerKind::comgr) return run(Comgr(environment.comgr_path));
  return run(Hiprtc(environment.hiprtc_path));
}

// A plain clang that stands in the dump's folder repeats the compile with this.
std::string repeat_command(const CompilerInput& input) {
  return fmt::format("clang++ -x hip --offload-device-only --no-gpu-bundle-output --offload-arch={} -nogpuinc -I . {} {} -o {}.co\n",
                     input.arch, fmt::join(input.options, " "), input.file_name, std::filesystem::path(input.file_name).stem().string());
}

std::vector<DumpFile> dump_files(const CompilerInput& input, const CompilerOutput& output) {
  std::vector<DumpFile> files{{input.file_name, input.text}, {"command.txt", repeat_command(input)}};
  for (const IncludedHeader& header : input.headers) files.push_back({std::string(header.name), std::string(header.text)});
  if (!output.log.empty()) files.push_back({"log.txt", output.log});
  if (output.ok) files.push_back({std::filesystem::path(input.file_name).replace_extension("co").string(), output.code_object});
  return files;
}

std::string first_error(const std::string& log) {
  const std::size_t at = log.find("error:");
  if (at == std::string::npos) return {};
  const std::size_t begin = log.rfind('\n', at) + 1; // npos + 1 is 0: the first line
  return ": " + log.substr(begin, log.find('\n', at) - begin);
}

[[noreturn]] void fail(const KernelSource& source, const CompileOptions& options, const CompilerInput& input, const Compiled& compiled) {
  const std::string fact = fmt::format("{} did not compile it for {} ({}){}", compiled.identity, input.arch, compiled.output.status,
                                       first_error(compiled.output.log));
  std::string folder, remedy;
  try {
    folder = write_dump(dump_folder(options.environment), fmt::format("{}-{}", source.name, input.arch), dump_files(input, compiled.output))
                 .string();
    remedy = fmt::format("read the log, the source and the command that repeats this in {}", folder);
  } catch (const EnvironmentError& error) {
    // The compiler's failure is what matters; that it could not be dumped as well is said beside it.
    remedy = fmt::format("read the log (no source was left: {})", error.what());
  }
  throw EnvironmentError("kernel " + source.name, fact, remedy, compiled.output.log, folder);
}

// Clang signs its objects in .comment, as text that ends in a zero.
std::string llvm_version(const std::string& code_object) {
  const std::size_t at = code_object.find("clang version ");
  if (at == std::string::npos) return {};
  const std::string text(code_object.c_str() + at);
  return text.substr(0, text.find_first_of(" (", std::string_view("clang version ").size()));
}

double total(const std::vector<CompilerStage>& stages) {
  double sum = 0;
  for (const CompilerStage& stage : stages) sum += stage.milliseconds;
  return sum;
}

} // namespace

CompileOptions own_process_options(const Environment& environment) {
  CompileOptions options;
  options.environment = environment;
  options.preload_arguments = environment.preload_arguments;
  return options;
}

std::vector<std::string> compiler_options(const CompileOptions& options) {
  std::vector<std::string> list(device_options.begin(), device_options.end());
  if (options.environment.line_tables) list.emplace_back(line_tables_option);
  if (options.preload_arguments) list.insert(list.end(), {"-mllvm", std::string(preload_option)});
  if (!options.packed_f32) list.insert(list.end(), {"-Xclang", "-target-feature", "-Xclang", "-packed-fp32-ops"});
  if (options.warnings_as_errors) list.insert(list.end(), {"-Wall", "-Wextra", "-Werror"});
  else list.emplace_back("-w"); // clang looks for what it may warn of in 3 % of the front end's time
  return list;
}

CompilerInput compiler_input(const KernelSource& source, const Target& target, const CompileOptions& options) {
  CompilerInput input{.file_name = source.name + ".hip", .text = source.text, .headers = {}, .arch = target.arch(), .options = {}};
  const std::set<std::string_view> included = included_headers(source.text);
  for (const TemplateHeader& header : template_headers())
    if (included.contains(header.name)) input.headers.push_back({header.name, header.text});
  if (options.environment.compiler == CompilerKind::hiprtc && options.replace_builtin_header)
    input.headers.push_back(replaced_builtin_header());
  input.options = compiler_options(options);
  if (options.environment.line_tables) input.text = with_line_directives(source);
  return input;
}

CodeObject compile(const KernelSource& source, const Target& target, const CompileOptions& options) {
  if (source.arch != target.arch())
    throw InternalError(fmt::format("the source of {} is for {}, not for {}", source.name, source.arch, target.arch()));
  require_safe_comgr_cache();
  CompilerInput input = compiler_input(source, target, options);
  const Compiled compiled = run_compiler(options.environment, input);
  const CompilerOutput& output = compiled.output;
  if (!output.ok) fail(source, options, input, compiled);
  if (options.environment.save_temps)
    write_dump(dump_folder(options.environment), fmt::format("{}-{}", source.name, input.arch), dump_files(input, output));
  return {.name = source.name,
          .arch = input.arch,
          .bytes = {output.code_object.begin(), output.code_object.end()},
          .compiler = compiled.identity,
          .llvm = llvm_version(output.code_object),
          .milliseconds = total(output.stages),
          .stages = output.stages,
          .log = output.log};
}

CompilerParts compiler_parts(const Environment& environment) {
  if (environment.compiler == CompilerKind::comgr) return parts_of(Comgr(environment.comgr_path));
  return parts_of(Hiprtc(environment.hiprtc_path));
}

} // namespace kiln

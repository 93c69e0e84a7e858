// CompileJob: a request compiled, and the messages that carry it to a worker and back.
#include "runtime/workers/compile_job.h"
#include "gen/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>

namespace kiln {
namespace {

using Json = nlohmann::json;

std::string packed(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

// What `read` makes of a message.
template <class Read> auto unpacked(const std::string& message, Read read) {
  try {
    return read(Json::from_cbor(message));
  } catch (const Json::exception& error) {
    throw InternalError(fmt::format("a message between Kiln and its worker is malformed: {}", error.what()));
  }
}

// The fields of an environment and of options that a compile depends on: one list for both directions.
template <class E, class O, class Each> void each_field(E& environment, O& options, Each each) {
  each("hiprtc_path", environment.hiprtc_path);
  each("comgr_path", environment.comgr_path);
  each("library_path", environment.library_path);
  each("preload", environment.preload);
  each("save_temps", environment.save_temps);
  each("line_tables", environment.line_tables);
  each("compiler_variables", environment.compiler_variables);
  each("warnings_as_errors", options.warnings_as_errors);
  each("replace_builtin_header", options.replace_builtin_header);
  each("preload_arguments", options.preload_arguments);
}

Json failure(const KernelRequest& request) {
  try {
    throw;
  } catch (const UserError& error) {
    return {{"kind", "user"}, {"subject", error.subject}, {"fact", error.fact}, {"remedy", error.remedy}};
  } catch (const EnvironmentError& error) {
    return {{"kind", "environment"},  {"subject", error.subject}, {"fact", error.fact},
            {"remedy", error.remedy}, {"log", error.log},         {"path", error.path}};
  } catch (const RejectedError& error) {
    return {{"kind", "rejected"}, {"what", error.what()}};
  } catch (const std::bad_alloc&) {
    return {{"kind", "environment"},
            {"subject", "kernel " + kernel_name(request)},
            {"fact", "the memory that a compile may take is not enough"},
            {"remedy", "raise the memory limit of workers"},
            {"log", ""},
            {"path", ""}};
  } catch (const std::exception& error) {
    return {{"kind", "other"}, {"what", error.what()}};
  }
}

[[noreturn]] void throw_failure(const Json& json) {
  const auto text = [&](const char* name) { return json.at(name).get<std::string>(); };
  const std::string kind = text("kind");
  if (kind == "rejected") throw RejectedError(text("what"));
  if (kind == "other") throw Error(text("what"));
  if (kind == "user") throw UserError(text("subject"), text("fact"), text("remedy"));
  throw EnvironmentError(text("subject"), text("fact"), text("remedy"), text("log"), text("path"));
}

// The compiler libraries read these themselves, when they like. So a request is compiled only where they are as its key says.
void require_variables(const KernelRequest& request) {
  const std::vector<std::string>& wanted = request.options.environment.compiler_variables;
  const std::vector<std::string> here = process_compiler_variables();
  if (wanted == here) return;
  std::vector<std::string> differing;
  std::ranges::set_symmetric_difference(wanted, here, std::back_inserter(differing));
  throw EnvironmentError(
      "kernel " + kernel_name(request),
      fmt::format("the compiler's variables where it would be compiled are not those of the request: {}", fmt::join(differing, ", ")),
      "set them before the Jit is made, and leave them alone while it lives");
}

} // namespace

EntryFiles compile_entry(const KernelRequest& request) {
  require_variables(request);
  const KernelSpec spec = parse_spec(request.spec);
  if (request.simulated > 1 && request.overrides.empty())
    return make_entry(request, build_quickest(spec, target_of(request), request.options, request.simulated));
  return make_entry(request, build_kernel(spec, target_of(request), request.options, request.overrides));
}

std::string request_message(const KernelRequest& request) {
  const Environment& e = request.options.environment;
  Json json{{"spec", request.spec},
            {"arch", request.arch},
            {"chip", request.chip},
            {"batch_invariant", request.batch_invariant},
            {"overrides", request.overrides},
            {"simulated", request.simulated},
            {"compiler", to_string(e.compiler)},
            {"dump_dir", e.dump_dir.string()}};
  each_field(e, request.options, [&](const char* name, const auto& field) { json[name] = field; });
  return packed(json);
}

KernelRequest request_of(const std::string& message) {
  return unpacked(message, [](const Json& json) {
    KernelRequest request{.spec = json.at("spec"),
                          .arch = json.at("arch"),
                          .chip = json.at("chip"),
                          .batch_invariant = json.at("batch_invariant"),
                          .overrides = json.at("overrides"),
                          .simulated = json.at("simulated"),
                          .options = {}};
    Environment& e = request.options.environment;
    e.compiler = json.at("compiler").get<std::string>() == to_string(CompilerKind::comgr) ? CompilerKind::comgr : CompilerKind::hiprtc;
    e.dump_dir = json.at("dump_dir").get<std::string>();
    each_field(e, request.options, [&](const char* name, auto& field) { json.at(name).get_to(field); });
    return request;
  });
}

std::string compiler_message(const Environment& environment) {
  KernelRequest request;
  request.options.environment = environment;
  return request_message(request);
}

std::string answer_message(const KernelRequest& request) {
  try {
    if (request.spec.empty()) {
      const CompilerParts parts = compiler_parts(request.options.environment);
      return packed({{"kind", "compiler"}, {"identity", parts.identity}, {"files", parts.files}});
    }
    const EntryFiles files = compile_entry(request);
    return packed({{"kind", "entry"}, {"meta", files.meta}, {"object", files.object}, {"source", files.source}});
  } catch (...) {
    return packed(failure(request));
  }
}

EntryFiles entry_of(const std::string& message) {
  return unpacked(message, [](const Json& json) -> EntryFiles {
    if (json.at("kind") != "entry") throw_failure(json);
    return {json.at("meta"), json.at("object"), json.at("source")};
  });
}

CompilerParts compiler_of(const std::string& message) {
  return unpacked(message, [](const Json& json) -> CompilerParts {
    if (json.at("kind") != "compiler") throw_failure(json);
    return {json.at("identity"), json.at("files")};
  });
}

std::string worker_greeting() { return fmt::format("kiln-worker {} {}", cache_format, generator_hash()); }

std::string failure_message(const std::exception& error) { return packed({{"kind", "other"}, {"what", error.what()}}); }

} // namespace kiln

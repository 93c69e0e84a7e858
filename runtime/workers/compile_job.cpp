// CompileJob: a request compiled, and the messages that carry it to a worker and back.
#include "runtime/workers/compile_job.h"
#include "gen/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <new>

namespace kiln {
namespace {

constexpr std::size_t fixed_parts = 14;

void require_parts(const Message& message, std::size_t at_least) {
  if (message.size() < at_least)
    throw InternalError(fmt::format("a message between Kiln and its worker has {} parts instead of {}", message.size(), at_least));
}

Message failure(const KernelRequest& request) {
  try {
    throw;
  } catch (const UserError& error) {
    return {"user", error.subject, error.fact, error.remedy};
  } catch (const EnvironmentError& error) {
    return {"environment", error.subject, error.fact, error.remedy, error.log, error.path};
  } catch (const RejectedError& error) {
    return {"rejected", error.what()};
  } catch (const std::bad_alloc&) {
    return {"environment",
            "kernel " + kernel_name(request),
            "the memory that a compile may take is not enough",
            "raise the memory limit of workers",
            "",
            ""};
  } catch (const std::exception& error) {
    return {"other", error.what()};
  }
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
  return make_entry(request, build_kernel(parse_spec(request.spec), target(request.arch), request.options, request.overrides));
}

Message request_message(const KernelRequest& request) {
  const Environment& e = request.options.environment;
  const auto flag = [](bool on) { return std::string(on ? "1" : ""); };
  Message message{request.spec,
                  request.arch,
                  std::string(to_string(e.compiler)),
                  e.hiprtc_path,
                  e.comgr_path,
                  e.dump_dir.string(),
                  flag(e.save_temps),
                  flag(request.options.warnings_as_errors),
                  flag(request.options.replace_builtin_header),
                  std::to_string(e.compiler_variables.size()),
                  e.library_path,
                  e.preload,
                  flag(e.line_tables),
                  flag(request.options.preload_arguments)};
  message.insert(message.end(), e.compiler_variables.begin(), e.compiler_variables.end());
  message.insert(message.end(), request.overrides.begin(), request.overrides.end());
  return message;
}

KernelRequest request_of(const Message& message) {
  require_parts(message, fixed_parts);
  KernelRequest request{.spec = message[0], .arch = message[1], .overrides = {}, .options = {}};
  Environment& e = request.options.environment;
  e.compiler = message[2] == to_string(CompilerKind::comgr) ? CompilerKind::comgr : CompilerKind::hiprtc;
  e.hiprtc_path = message[3];
  e.comgr_path = message[4];
  e.dump_dir = message[5];
  e.save_temps = !message[6].empty();
  request.options.warnings_as_errors = !message[7].empty();
  request.options.replace_builtin_header = !message[8].empty();
  const std::size_t variables = fixed_parts + std::stoul(message[9]);
  e.library_path = message[10];
  e.preload = message[11];
  e.line_tables = !message[12].empty();
  request.options.preload_arguments = !message[13].empty();
  require_parts(message, variables);
  e.compiler_variables.assign(message.begin() + fixed_parts, message.begin() + static_cast<std::ptrdiff_t>(variables));
  request.overrides.assign(message.begin() + static_cast<std::ptrdiff_t>(variables), message.end());
  return request;
}

Message answer_message(const KernelRequest& request) {
  try {
    EntryFiles files = compile_entry(request);
    return {"entry", std::move(files.meta), std::move(files.object), std::move(files.source)};
  } catch (...) {
    return failure(request);
  }
}

EntryFiles entry_of(const Message& message) {
  require_parts(message, 2);
  const std::string& kind = message[0];
  if (kind == "rejected") throw RejectedError(message[1]);
  if (kind == "other") throw Error(message[1]);
  require_parts(message, 4);
  if (kind == "entry") return {message[1], message[2], message[3]};
  if (kind == "user") throw UserError(message[1], message[2], message[3]);
  require_parts(message, 6);
  throw EnvironmentError(message[1], message[2], message[3], message[4], message[5]);
}

Message worker_greeting() { return {"kiln-worker", std::to_string(cache_format), std::string(generator_hash())}; }

} // namespace kiln

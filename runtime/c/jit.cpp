// Jits of the C ABI: settings as text, compiles that block and that do not.
#include "gen/plan/target_text.h"
#include "runtime/c/handles.h"
#include "runtime/c/text.h"
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace kiln::c {
namespace {

// Throws UserError for a name that means nothing to a Jit.
void check_setting(const kiln_setting& setting, const std::vector<VariableInfo>& known) {
  require(setting.name, "kiln_jit_options", "the name of a setting");
  require(setting.value, setting.name, "the value of the setting");
  const std::string name = setting.name;
  if (name == "KILN_DEVICE" || name == "KILN_HIP_PATH")
    throw UserError(name, "it is no setting of a jit",
                    "give the device's name to kiln_device_open, and set KILN_HIP_PATH in the environment");
  if (std::ranges::find(known, name, &VariableInfo::name) != known.end()) return;
  std::vector<std::string> names;
  for (const VariableInfo& info : known) names.push_back(info.name);
  throw UserError("setting " + name, "there is no such variable", fmt::format("those there are: {}", fmt::join(names, ", ")));
}

Environment environment_with(std::span<const kiln_setting> settings) {
  const std::vector<VariableInfo> known = describe(Environment{});
  for (const kiln_setting& setting : settings) check_setting(setting, known);
  Environment environment = parse_environment([&](std::string_view name) -> std::optional<std::string> {
    for (const kiln_setting& setting : settings)
      if (setting.name == name) return setting.value;
    return process_lookup()(name);
  });
  environment.compiler_variables = process_compiler_variables();
  return environment;
}

JitOptions options_of(const kiln_jit_options* given) {
  if (given == nullptr) return jit_options(environment_with({}));
  if (given->size != sizeof(kiln_jit_options))
    throw UserError("kiln_jit_options",
                    fmt::format("its size is {}, and this library knows one of {}", given->size, sizeof(kiln_jit_options)),
                    "set size to sizeof(kiln_jit_options), and compile with the kiln_c.h of this library");
  if (given->setting_count != 0) require(given->settings, "kiln_jit_options", "settings");
  JitOptions options = jit_options(environment_with({given->settings, given->setting_count}));
  if (given->log != nullptr)
    options.log = [log = given->log, context = given->log_context](const std::string& line) { log(context, line.c_str()); };
  return options;
}

std::vector<std::string> fields_of(const char* const* fields, std::size_t count, const char* function) {
  if (count != 0) require(fields, function, "fields");
  std::vector<std::string> list;
  for (std::size_t i = 0; i < count; ++i) {
    require(fields[i], function, "a field");
    list.emplace_back(fields[i]);
  }
  return list;
}

std::string stats_text(const JitStats& stats) {
  const nlohmann::ordered_json json{{"requests", stats.requests},     {"memory_hits", stats.memory_hits},
                                    {"joined", stats.joined},         {"folder_hits", stats.folder_hits},
                                    {"layer_hits", stats.layer_hits}, {"remote_hits", stats.remote_hits},
                                    {"compiled", stats.compiled},     {"failed", stats.failed},
                                    {"compile_ms", stats.compile_ms}, {"events", stats.events}};
  return json.dump();
}

} // namespace
} // namespace kiln::c

using namespace kiln;

extern "C" {

kiln_status kiln_jit_create(const kiln_device* device, const kiln_jit_options* options, kiln_jit** jit) {
  return c::guarded([&] {
    c::require(device, "kiln_jit_create", "device");
    c::require(jit, "kiln_jit_create", "jit");
    *jit = new kiln_jit{.jit = Jit(device->device, c::options_of(options))};
  });
}

kiln_status kiln_jit_create_for(const char* arch, const kiln_jit_options* options, kiln_jit** jit) {
  return c::guarded([&] {
    c::require(arch, "kiln_jit_create_for", "arch");
    c::require(jit, "kiln_jit_create_for", "jit");
    *jit = new kiln_jit{.jit = Jit(target(arch), c::options_of(options))};
  });
}

void kiln_jit_free(kiln_jit* jit) { delete jit; }
const char* kiln_jit_arch(const kiln_jit* jit) { return jit == nullptr ? nullptr : jit->jit.target().arch().c_str(); }

kiln_status kiln_jit_stats(const kiln_jit* jit, char** json) {
  return c::guarded([&] {
    c::require(jit, "kiln_jit_stats", "jit");
    c::require(json, "kiln_jit_stats", "json");
    *json = c::copy_text(c::stats_text(jit->jit.stats()));
  });
}

kiln_status kiln_jit_compile(kiln_jit* jit, const char* spec, const char* const* fields, size_t field_count, kiln_kernel** kernel) {
  return c::guarded([&] {
    c::require(jit, "kiln_jit_compile", "jit");
    c::require(spec, "kiln_jit_compile", "spec");
    c::require(kernel, "kiln_jit_compile", "kernel");
    *kernel = new kiln_kernel(jit->jit.compile(parse_spec(spec, jit->jit.target()), c::fields_of(fields, field_count, "kiln_jit_compile")));
  });
}

kiln_status kiln_jit_compile_async(kiln_jit* jit, const char* spec, const char* const* fields, size_t field_count, kiln_pending** pending) {
  return c::guarded([&] {
    c::require(jit, "kiln_jit_compile_async", "jit");
    c::require(spec, "kiln_jit_compile_async", "spec");
    c::require(pending, "kiln_jit_compile_async", "pending");
    *pending = new kiln_pending{
        jit->jit.compile_async(parse_spec(spec, jit->jit.target()), c::fields_of(fields, field_count, "kiln_jit_compile_async"))};
  });
}

kiln_status kiln_pending_wait(const kiln_pending* pending, int64_t milliseconds, kiln_kernel** kernel) {
  bool ready = true;
  const kiln_status status = c::guarded([&] {
    c::require(pending, "kiln_pending_wait", "pending");
    c::require(kernel, "kiln_pending_wait", "kernel");
    const std::shared_future<Kernel> future = pending->kernel; // a copy of its own for each thread
    // More than a century is for ever: a later point in time would overflow the clock.
    constexpr std::int64_t century = std::int64_t{100} * 365 * 24 * 3600 * 1000;
    if (milliseconds >= 0 && milliseconds < century)
      ready = future.wait_for(std::chrono::milliseconds(milliseconds)) == std::future_status::ready;
    if (ready) *kernel = new kiln_kernel(future.get());
  });
  return status == KILN_OK && !ready ? KILN_NOT_READY : status;
}

void kiln_pending_free(kiln_pending* pending) { delete pending; }

} // extern "C"

// Errors of the C ABI: from exceptions to codes and texts.
#include "runtime/build/build_kernel.h"
#include "runtime/c/handles.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <new>

namespace kiln::c {
namespace {

// What this thread's latest failed call said.
std::string& error_text() {
  thread_local std::string text;
  return text;
}

kiln_status keep(kiln_status status, const char* text) noexcept {
  try {
    error_text() = text;
  } catch (...) { // no memory for a text: the code has to do
    error_text().clear();
  }
  return status;
}

} // namespace

kiln_status keep_error() noexcept {
  try {
    throw;
  } catch (const UserError& error) {
    return keep(KILN_USER_ERROR, error.what());
  } catch (const EnvironmentError& error) {
    return keep(KILN_ENVIRONMENT_ERROR, error.what());
  } catch (const CacheMiss& error) {
    return keep(KILN_CACHE_MISS, error.what());
  } catch (const ExecutionError& error) {
    return keep(KILN_EXECUTION_ERROR, error.what());
  } catch (const RejectedError& error) {
    return keep(KILN_REJECTED, error.what());
  } catch (const InternalError& error) {
    return keep(KILN_INTERNAL_ERROR, error.what());
  } catch (const Error& error) { // a compile that never began
    return keep(KILN_ENVIRONMENT_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return keep(KILN_ENVIRONMENT_ERROR, "host memory: there is not enough for this call; free some");
  } catch (const std::exception& error) {
    return keep(KILN_INTERNAL_ERROR, error.what());
  } catch (...) {
    return keep(KILN_INTERNAL_ERROR, "internal: an exception of unknown type; please report");
  }
}

void require(const void* pointer, const char* function, const char* what) {
  if (pointer == nullptr) throw UserError(function, fmt::format("{} is NULL", what), "give one");
}

DType dtype_of(const char* name, const std::string& subject) {
  if (const std::optional<DType> type = name == nullptr ? std::nullopt : parse_dtype(name)) return *type;
  std::vector<std::string_view> names;
  for (const DType type : all_dtypes()) names.push_back(to_string(type));
  throw UserError(subject, fmt::format("\"{}\" is no type", name == nullptr ? "NULL" : name),
                  fmt::format("the types are {}", fmt::join(names, ", ")));
}

} // namespace kiln::c

extern "C" {

const char* kiln_error_text(void) { return kiln::c::error_text().c_str(); }

const char* kiln_status_name(kiln_status status) {
  switch (status) {
  case KILN_OK: return "ok";
  case KILN_USER_ERROR: return "user error";
  case KILN_ENVIRONMENT_ERROR: return "environment error";
  case KILN_CACHE_MISS: return "cache miss";
  case KILN_EXECUTION_ERROR: return "execution error";
  case KILN_REJECTED: return "rejected";
  case KILN_INTERNAL_ERROR: return "internal error";
  case KILN_NOT_READY: return "not ready";
  }
  return "no status of this version";
}

} // extern "C"

// CompileJob: a request compiled to the files of an entry, in this process or spelled as messages for another one.
#pragma once
#include "runtime/cache/entry.h"
#include <exception>
#include <string>

namespace kiln {

// parse_spec, build_kernel, make_entry. Throws what they throw, and EnvironmentError when the compiler's variables of this process
// (HIPRTC_COMPILE_OPTIONS_APPEND, AMD_COMGR_*) are not those of the request: its key would name other code.
EntryFiles compile_entry(const KernelRequest& request);

// JSON objects with named fields, in the binary form of CBOR: paths and code objects are no UTF-8.
std::string request_message(const KernelRequest& request);
KernelRequest request_of(const std::string& message); // throws InternalError

// A request without a spec asks what the compiler is. Answered as any, and read by compiler_of: what compiler_parts gives or throws.
std::string compiler_message(const Environment& environment);
CompilerParts compiler_of(const std::string& message);

// The result or the exception of compile_entry as a message, and back: `entry_of` returns or throws the same.
std::string answer_message(const KernelRequest& request);
EntryFiles entry_of(const std::string& message);

// The first message of a worker: both programs must be of the same Kiln.
std::string worker_greeting();

// An answer that says what kept a worker from one.
std::string failure_message(const std::exception& error);

} // namespace kiln

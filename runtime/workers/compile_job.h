// CompileJob: a request compiled to the files of an entry, in this process or spelled as messages for another one.
#pragma once
#include "runtime/cache/entry.h"
#include "runtime/workers/message.h"

namespace kiln {

// parse_spec, build_kernel, make_entry. Throws what they throw, and EnvironmentError when the compiler's variables of this process
// (HIPRTC_COMPILE_OPTIONS_APPEND, AMD_COMGR_*) are not those of the request: its key would name other code.
EntryFiles compile_entry(const KernelRequest& request);

Message request_message(const KernelRequest& request);
KernelRequest request_of(const Message& message); // throws InternalError

// The result or the exception of compile_entry as a message, and back: `entry_of` returns or throws the same.
Message answer_message(const KernelRequest& request);
EntryFiles entry_of(const Message& message);

// The first message of a worker: both programs must be of the same Kiln.
Message worker_greeting();

} // namespace kiln

// kiln_c.h: Kiln for C, and for every language that calls C. Specs are texts, handles are opaque, errors are codes with Kiln's own words.
//
// docs/c.md is the guide. Rules of all functions:
// * One that can fail returns a kiln_status. KILN_OK is 0. On another one its results are untouched, and kiln_error_text() says why.
// * No exception and no signal leaves a function.
// * Texts are UTF-8 and end in a zero. A text that comes back as `const char*` belongs to the handle that it was asked of, or to the
//   library; one that comes back through `char**` is the caller's, who ends it with kiln_text_free.
// * Handles of devices, jits, kernels and pending compiles may be used by several threads at once. kiln_X_free ends a handle: no other
//   thread may be using it. Handles keep what they need of others alive, so they may be freed in any order. Free of NULL does nothing.
// * A bound kernel may be launched by several threads at once if kiln_kernel_workspace_bytes is 0.
// * A child of fork() makes jits of its own: one that it inherited answers with KILN_USER_ERROR. HIP does not survive a fork.
#ifndef KILN_C_H
#define KILN_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Another major number has other functions or structs, and another name of the library (libkiln_c.so.MAJOR). The minor number
// counts additions.
#define KILN_C_MAJOR 1
#define KILN_C_MINOR 1

typedef enum kiln_status {
  KILN_OK = 0,
  KILN_USER_ERROR = 1,        // what the program did: a wrong argument, spec, setting or device
  KILN_ENVIRONMENT_ERROR = 2, // what the machine lacks: a library, memory, a disk with room; errors of HIP
  KILN_CACHE_MISS = 3,        // the policy is cache_only, and no cache has the kernel
  KILN_EXECUTION_ERROR = 4,   // findings of the CPU model: what a GPU must not be asked to do
  KILN_REJECTED = 5,          // no schedule gave machine code that keeps the kernel's contract
  KILN_INTERNAL_ERROR = 6,    // a bug in Kiln
  KILN_NOT_READY = 7          // kiln_pending_wait: the time is over, and the compile goes on
} kiln_status;
const char* kiln_status_name(kiln_status status); // "user error"

// The text of this thread's latest failed call: subject, fact and remedy. "" before the first. Valid until this thread's next failed call.
const char* kiln_error_text(void);

// KILN_OK when the library that is loaded offers what a program compiled with these numbers uses. Call KILN_C_CHECK() once, first.
kiln_status kiln_c_check(uint32_t major, uint32_t minor);
#define KILN_C_CHECK() kiln_c_check(KILN_C_MAJOR, KILN_C_MINOR)
uint32_t kiln_c_version(void);  // of the library: major << 16 | minor
const char* kiln_release(void); // of Kiln: "0.1.0"
void kiln_text_free(char* text);

// ---- Specs and types

// Parses a spec (docs/guide.md has the grammar) and gives its canonical text. `canonical` may be NULL. Errors name line and column.
kiln_status kiln_spec_check(const char* spec, char** canonical);
// The pointwise functions of specs: [{"name": "exp", "operands": 1, "gives": "f32"}, ...]; "gives" is f32 or bool.
const char* kiln_operations(void);
// Every word of specs that calls: [{"name": "gather", "kind": "other", "operands": 2, "numbers": 0, "options": ["checked"]}, ...]. Between
// the parentheses stand, in this order: a type or a shape ("first": "type" or "shape", left out where there is none), values ("operands"),
// whole numbers, and any of the options. "kind": pointwise, condition (gives bool), row, group, product, written_out, other. Since 1.1.
const char* kiln_language(void);
// What a spec declares, since 1.1: {"name": "norm", "dims": [{"name": "rows", "min": 1, "max": 64}], "inputs": [{"name": "x", "dtype":
// "f16", "shape": ["rows", 4096], "strided": false, "preshuffled": false}], "scalars": [{"name", "dtype"}], "outputs": [{"name", "dtype",
// "shape", "strided", "in_place_of": ""}]}. A bound that a dim has not is left out.
kiln_status kiln_spec_describe(const char* spec, char** json);
// Bytes of one element of a type: "f16", "e4m3fnuz", "bool", ... A KILN_USER_ERROR for e2m1, of which two elements share a byte.
kiln_status kiln_type_bytes(const char* dtype, size_t* bytes);
// The largest finite number of a type, since 1.1: 448 of e4m3fn, 240 of e4m3fnuz. A KILN_USER_ERROR for bool.
kiln_status kiln_type_max(const char* dtype, double* largest);
// `count` numbers to elements of a type and back, on the host. Rounds to nearest even; integers and fp8 clamp. The pointers need no
// alignment but that of their element. With e2m1 the even element is in the low half of a byte; an odd count leaves the last high half 0.
kiln_status kiln_encode(const char* dtype, const float* from, void* to, size_t count);
kiln_status kiln_decode(const char* dtype, const void* from, float* to, size_t count);

// A spec that a program of another language writes: statements one after the other, with what each value is. Since 1.1.
typedef struct kiln_writer kiln_writer;
kiln_status kiln_writer_create(const char* kernel, kiln_writer** writer);
void kiln_writer_free(kiln_writer* writer);
// Statements of docs/guide.md: "input x: f16[rows, 4096]", "let v1 = exp(x)", ... `declared`, which may be NULL, gets what the last of
// them declares: {"dtype": "f32", "shape": ["rows", 1]}, or {} after a dim. Places in errors count from the begin of `statements`.
kiln_status kiln_writer_add(kiln_writer* writer, const char* statements, char** declared);
// The canonical text of what was added. Values that no output uses are no part of it.
kiln_status kiln_writer_text(kiln_writer* writer, char** canonical);

// ---- Ready specs, since 1.1

// [{"name": "rmsnorm", "doc": "RMS norm with a weight a column"}, ...]
kiln_status kiln_catalog(char** json);
// The options that an entry takes: [{"name": "cols", "default": 4096, "help": "..."}]. Defaults are numbers, true or false, names of types.
kiln_status kiln_catalog_options(const char* entry, char** json);
// The text of an entry's spec. `options` as {"cols", "8192"}, {"dtype", "bf16"}, {"in_place", "true"}; fp8 is that of `arch` unless said.
typedef struct kiln_setting kiln_setting;
kiln_status kiln_catalog_spec(const char* entry, const char* arch, const kiln_setting* options, size_t count, char** spec);

// ---- Devices

typedef struct kiln_device kiln_device;
// "hip:0", or "emulated:gfx942" for the CPU model. NULL: the device that KILN_DEVICE names, hip:0 without it.
kiln_status kiln_device_open(const char* name, kiln_device** device);
void kiln_device_free(kiln_device* device);
const char* kiln_device_arch(const kiln_device* device);        // "gfx942"
const char* kiln_device_description(const kiln_device* device); // for people
const char* kiln_device_fp8(const kiln_device* device);         // its native e4m3: "e4m3fnuz" or "e4m3fn"
int kiln_device_is_emulated(const kiln_device* device);

// For programs without an allocator of their own. Addresses are the device's, multiples of 256, and not for the host to follow.
// `name` stands in findings, NULL for "buffer". What is not released ends with the device's handle. To release an address that this handle
// did not give, or twice, is a user error.
kiln_status kiln_device_allocate(kiln_device* device, size_t bytes, const char* name, void** address);
kiln_status kiln_device_release(kiln_device* device, void* address);
// These return when it is done. `stream` is a hipStream_t of the device; NULL: its default stream.
kiln_status kiln_device_write(kiln_device* device, void* to, const void* host, size_t bytes, void* stream);
kiln_status kiln_device_read(kiln_device* device, void* host, const void* from, size_t bytes, void* stream);
kiln_status kiln_device_zero(kiln_device* device, void* to, size_t bytes, void* stream);
kiln_status kiln_device_synchronize(kiln_device* device, void* stream);

// ---- Compiling

// A variable of docs/environment.md with a value for this jit alone: {"KILN_CACHE_DIR", "/path"}.
struct kiln_setting {
  const char* name;
  const char* value;
};

typedef struct kiln_jit_options {
  size_t size; // sizeof(kiln_jit_options)
  const kiln_setting* settings;
  size_t setting_count;
  void (*log)(void* context, const char* line); // instead of stderr. Called by any thread, several at once.
  void* log_context;
} kiln_jit_options;

typedef struct kiln_jit kiln_jit;
// `options` may be NULL. What no setting says, the process's environment says.
kiln_status kiln_jit_create(const kiln_device* device, const kiln_jit_options* options, kiln_jit** jit);
// To compile for "gfx942" or "gfx950" on a machine that has no such device.
kiln_status kiln_jit_create_for(const char* arch, const kiln_jit_options* options, kiln_jit** jit);
void kiln_jit_free(kiln_jit* jit); // waits for the compiles that run
const char* kiln_jit_arch(const kiln_jit* jit);
// Counts of where kernels came from: {"requests": 3, "memory_hits": 1, ..., "events": {}}
kiln_status kiln_jit_stats(const kiln_jit* jit, char** json);

typedef struct kiln_kernel kiln_kernel;
typedef struct kiln_pending kiln_pending;
// `spec`: $fp8 in it stands for the architecture's own e4m3, and $fp8_max for the largest number of that.
// `fields`: what to fix of the schedule, "vec=4"; NULL with 0.
kiln_status kiln_jit_compile(kiln_jit* jit, const char* spec, const char* const* fields, size_t field_count, kiln_kernel** kernel);
// The same in the background. Only a spec that does not parse fails here; other errors come from kiln_pending_wait.
kiln_status kiln_jit_compile_async(kiln_jit* jit, const char* spec, const char* const* fields, size_t field_count, kiln_pending** pending);
// Milliseconds; 0 asks, a negative number waits for ever. May be called again, also after a kernel came.
kiln_status kiln_pending_wait(const kiln_pending* pending, int64_t milliseconds, kiln_kernel** kernel);
void kiln_pending_free(kiln_pending* pending); // the compile goes on, for the jit

// ---- Kernels

void kiln_kernel_free(kiln_kernel* kernel); // not before its launches on a GPU are over
const char* kiln_kernel_name(const kiln_kernel* kernel);
const char* kiln_kernel_arch(const kiln_kernel* kernel);
const char* kiln_kernel_key(const kiln_kernel* kernel);    // 64 digits
const char* kiln_kernel_origin(const kiln_kernel* kernel); // where it came from: "memory", "folder", "layer", "remote", "compiled"
const char* kiln_kernel_spec(const kiln_kernel* kernel);   // canonical text
const char* kiln_kernel_meta(const kiln_kernel* kernel);   // JSON: schedule, ISA facts, the verdict of the contract, compiler
// JSON: what a launcher needs, arguments with offset and type, grid, workspace. NULL when memory is out.
const char* kiln_kernel_interface(const kiln_kernel* kernel);
size_t kiln_kernel_workspace_bytes(const kiln_kernel* kernel);
const void* kiln_kernel_code_object(const kiln_kernel* kernel, size_t* bytes); // an ELF file, for hipModuleLoadData

// Elements in device memory.
typedef struct kiln_tensor {
  void* data;
  const char* dtype;      // "f16", as in specs
  int32_t rank;           // 0: one element, `shape` may be NULL
  const int64_t* shape;   // `rank` sizes
  const int64_t* strides; // `rank` distances in elements; NULL: contiguous. All dims after the first have to be contiguous.
} kiln_tensor;

typedef struct kiln_argument {
  const char* name;
  const kiln_tensor* tensor; // NULL: it is a number, a scalar or a run-time size
  double number;
} kiln_argument;

typedef struct kiln_bound kiln_bound;
// Puts the code on a device. kiln_kernel_bind does so when nobody has; HIP refuses it while a stream is captured.
kiln_status kiln_kernel_load(const kiln_kernel* kernel, const kiln_device* device);
// Checks every argument, in any order, by name. The tensors' memory is used by launches, everything else is copied here.
kiln_status kiln_kernel_bind(const kiln_kernel* kernel, const kiln_device* device, const kiln_argument* arguments, size_t count,
                             kiln_bound** bound);
void kiln_bound_free(kiln_bound* bound); // may come before its launches are over, unless a graph has captured it
void kiln_bound_grid(const kiln_bound* bound, uint32_t* workgroups, uint32_t* threads);
// The hot path: one call of HIP on `stream`; NULL is the device's default stream. On an emulated device it is over when this returns.
kiln_status kiln_bound_launch(const kiln_bound* bound, void* stream);

// A kernel with the shapes of its arguments, for programs whose addresses change from launch to launch. Since 1.1.
typedef struct kiln_call kiln_call;
// Arguments as for kiln_kernel_bind; their addresses and numbers do not matter. Nothing but names is checked before the first launch.
kiln_status kiln_call_create(const kiln_kernel* kernel, const kiln_device* device, const kiln_argument* arguments, size_t count,
                             kiln_call** call);
void kiln_call_free(kiln_call* call); // may come before its launches are over
// Binds, with all checks of kiln_kernel_bind, and launches. `addresses` of the tensors and `numbers` of the others, each in the order of
// kiln_call_create; NULL where there are none. Several threads may launch at once: a workspace is taken for each launch, unless it is one
// of the arguments.
kiln_status kiln_call_launch(const kiln_call* call, void* const* addresses, const double* numbers, void* stream);

#ifdef __cplusplus
}
#endif
#endif // KILN_C_H

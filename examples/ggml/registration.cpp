// Registration: what libggml finds in libggml-kiln.so. One device, that of KILN_DEVICE.
#include "examples/ggml/buffer.h"
#include "examples/ggml/operations/operations.h"
#include <cstdio>
#include <cstring>
#include <string>

namespace kiln_ggml {
namespace {

struct Registered { // there from the first call until the process ends: HIP's own statics may go before this library's
  std::unique_ptr<Engine> engine;
  std::string description;
  ggml_backend_reg reg{};
  ggml_backend_device device{};
  ggml_backend_buffer_type buffers{};
};
Registered& registered() {
  static auto* const value = new Registered;
  return *value;
}

// ---- events: marks on the device's default stream, on which all that backends do is queued
kiln::StreamMark* mark_of(ggml_backend_event_t event) { return static_cast<kiln::StreamMark*>(event->context); }

ggml_backend_event_t new_event(ggml_backend_dev_t device) { return new ggml_backend_event{device, nullptr}; }
void free_event(ggml_backend_dev_t, ggml_backend_event_t event) {
  delete mark_of(event);
  delete event;
}
void wait_for_event(ggml_backend_dev_t, ggml_backend_event_t event) {
  if (mark_of(event)) mark_of(event)->wait();
}
void record_event(ggml_backend_t, ggml_backend_event_t event) {
  delete mark_of(event);
  event->context = registered().engine->device().mark().release();
}
// Lets what a backend does next wait for another backend. One stream has that order anyway.
void queue_behind_event(ggml_backend_t, ggml_backend_event_t) {}

// ---- a backend: a stream of graphs
const char* backend_name(ggml_backend_t) { return "Kiln0"; }
void free_backend(ggml_backend_t backend) { delete backend; }
void synchronize(ggml_backend_t) { registered().engine->device().synchronize(); }

void* at(const ggml_tensor* tensor, std::size_t offset) { return static_cast<std::byte*>(tensor->data) + offset; }

void start_set(ggml_backend_t, ggml_tensor* tensor, const void* data, std::size_t offset, std::size_t size) {
  registered().engine->device().start_copy_to_device(at(tensor, offset), {static_cast<const std::byte*>(data), size});
}
void start_get(ggml_backend_t, const ggml_tensor* tensor, void* data, std::size_t offset, std::size_t size) {
  registered().engine->device().start_copy_to_host({static_cast<std::byte*>(data), size}, at(tensor, offset));
}
bool start_copy_between(ggml_backend_t, ggml_backend_t, const ggml_tensor* from, ggml_tensor* to) {
  return start_copy(registered().engine->device(), *from, *to);
}

ggml_status graph_compute(ggml_backend_t, ggml_cgraph* graph) {
  try {
    registered().engine->compute(*graph);
    return GGML_STATUS_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kiln: %s\n", error.what());
    return GGML_STATUS_FAILED;
  }
}

ggml_guid_t guid() {
  static ggml_guid value = {0x6b, 0x69, 0x6c, 0x6e, 0x2d, 0x67, 0x67, 0x6d, 0x6c, 0x2d, 0x62, 0x61, 0x63, 0x6b, 0x65, 0x6e};
  return &value;
}

ggml_backend_t init_backend(ggml_backend_dev_t device, const char*) {
  auto* const backend = new ggml_backend{};
  backend->guid = guid();
  backend->device = device;
  backend->iface.get_name = backend_name;
  backend->iface.free = free_backend;
  backend->iface.set_tensor_async = start_set;
  backend->iface.get_tensor_async = start_get;
  backend->iface.cpy_tensor_async = start_copy_between;
  backend->iface.synchronize = synchronize;
  backend->iface.event_record = record_event;
  backend->iface.event_wait = queue_behind_event;
  backend->iface.graph_compute = graph_compute;
  return backend;
}

// ---- the device
const char* device_name(ggml_backend_dev_t) { return "Kiln0"; }
const char* device_description(ggml_backend_dev_t) { return registered().description.c_str(); }
enum ggml_backend_dev_type device_type(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; }
ggml_backend_buffer_type_t buffer_type(ggml_backend_dev_t) { return &registered().buffers; }
bool device_supports_op(ggml_backend_dev_t, const ggml_tensor* op) { return supports(*op); }
bool supports_buffers(ggml_backend_dev_t, ggml_backend_buffer_type_t type) { return type == &registered().buffers; }

void device_memory(ggml_backend_dev_t, std::size_t* free, std::size_t* total) {
  *free = registered().engine->memory_free();
  *total = registered().engine->settings().memory;
}

void device_properties(ggml_backend_dev_t device, ggml_backend_dev_props* properties) {
  *properties = {};
  properties->name = device_name(device);
  properties->description = device_description(device);
  device_memory(device, &properties->memory_free, &properties->memory_total);
  properties->type = device_type(device);
  properties->caps.async = properties->caps.events = true;
}

// ---- the registration
const char* registration_name(ggml_backend_reg_t) { return "Kiln"; }
std::size_t device_count(ggml_backend_reg_t) { return 1; }
ggml_backend_dev_t device_at(ggml_backend_reg_t, std::size_t) { return &registered().device; }
void* proc_address(ggml_backend_reg_t, const char*) { return nullptr; }

// The version of the interface that the loaded libggml has: that of a backend which it has accepted. -1: there is none yet.
int version_of_libggml() { return ggml_backend_reg_count() == 0 ? -1 : ggml_backend_reg_get(0)->api_version; }

void fill(Registered& r) {
  r.buffers = {.iface = buffer_type_interface(), .device = &r.device, .context = r.engine.get()};
  r.device.reg = &r.reg;
  ggml_backend_device_i& d = r.device.iface;
  d.get_name = device_name;
  d.get_description = device_description;
  d.get_memory = device_memory;
  d.get_type = device_type;
  d.get_props = device_properties;
  d.init_backend = init_backend;
  d.get_buffer_type = buffer_type;
  d.supports_op = device_supports_op;
  d.supports_buft = supports_buffers;
  d.event_new = new_event;
  d.event_free = free_event;
  d.event_synchronize = wait_for_event;
  r.reg.api_version = GGML_BACKEND_API_VERSION;
  r.reg.iface = {
      .get_name = registration_name, .get_device_count = device_count, .get_device = device_at, .get_proc_address = proc_address};
}

} // namespace
} // namespace kiln_ggml

ggml_backend_reg_t ggml_backend_init() {
  using namespace kiln_ggml;
  Registered& r = registered();
  if (const int version = version_of_libggml(); version != -1 && version != GGML_BACKEND_API_VERSION) {
    std::fprintf(stderr,
                 "kiln: this is libggml-kiln.so for version %d of ggml's backend interface, and the loaded libggml %s has version %d; "
                 "build Kiln against that libggml's own headers: -DKILN_GGML_INCLUDE=DIR\n",
                 GGML_BACKEND_API_VERSION, ggml_version(), version);
    return nullptr;
  }
  if (r.engine) return &r.reg;
  try {
    r.engine = std::make_unique<Engine>(kiln::default_device());
    r.description = r.engine->device().description();
    fill(r);
    return &r.reg;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kiln: %s\n", error.what());
    return nullptr;
  }
}

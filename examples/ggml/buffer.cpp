// Buffers of ggml in a device's memory: one allocation each, to which ggml's own offsets are added.
#include "examples/ggml/buffer.h"
#include <cstdio>
#include <vector>

namespace kiln_ggml {
namespace {

struct Buffer {
  Engine* engine;
  kiln::DeviceMemory memory;
};

Buffer& buffer_of(ggml_backend_buffer_t buffer) { return *static_cast<Buffer*>(buffer->context); }
void* at(const ggml_tensor* tensor, std::size_t offset) { return static_cast<std::byte*>(tensor->data) + offset; }

void free_buffer(ggml_backend_buffer_t buffer) {
  Buffer* const b = &buffer_of(buffer);
  b->engine->give_back(b->memory.bytes());
  delete b;
}

void* get_base(ggml_backend_buffer_t buffer) { return buffer_of(buffer).memory.data(); }

void fill(const kiln::Device& device, void* to, std::uint8_t value, std::size_t size) {
  if (size == 0) return;
  if (value == 0) return device.zero(to, size);
  const std::vector<std::byte> bytes(size, static_cast<std::byte>(value));
  device.copy_to_device(to, bytes);
}

void memset_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor, std::uint8_t value, std::size_t offset, std::size_t size) {
  fill(buffer_of(buffer).engine->device(), at(tensor, offset), value, size);
}

void set_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data, std::size_t offset, std::size_t size) {
  if (size != 0) buffer_of(buffer).engine->device().copy_to_device(at(tensor, offset), {static_cast<const std::byte*>(data), size});
}

void get_tensor(ggml_backend_buffer_t buffer, const ggml_tensor* tensor, void* data, std::size_t offset, std::size_t size) {
  if (size != 0) buffer_of(buffer).engine->device().copy_to_host({static_cast<std::byte*>(data), size}, at(tensor, offset));
}

// Within a device; ggml copies what comes from elsewhere through the host.
bool copy_tensor(ggml_backend_buffer_t buffer, const ggml_tensor* from, ggml_tensor* to) {
  if (!start_copy(buffer_of(buffer).engine->device(), *from, *to)) return false;
  buffer_of(buffer).engine->device().synchronize();
  return true;
}

void clear(ggml_backend_buffer_t buffer, std::uint8_t value) {
  fill(buffer_of(buffer).engine->device(), get_base(buffer), value, buffer->size);
}

// By name, for interfaces of other versions have further members: all of them null.
ggml_backend_buffer_i buffer_interface() {
  ggml_backend_buffer_i i{};
  i.free_buffer = free_buffer;
  i.get_base = get_base;
  i.memset_tensor = memset_tensor;
  i.set_tensor = set_tensor;
  i.get_tensor = get_tensor;
  i.cpy_tensor = copy_tensor;
  i.clear = clear;
  return i;
}

// The buffer that a tensor lies in, or that the tensor lies in which it is a view of.
ggml_backend_buffer_t buffer_below(const ggml_tensor& tensor) { return tensor.view_src ? tensor.view_src->buffer : tensor.buffer; }

// Null when the device has too little memory: ggml says so, and its caller frees what it has.
ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t type, std::size_t size) {
  auto* const engine = static_cast<Engine*>(type->context);
  const std::size_t bytes = size == 0 ? 1 : size;
  if (!engine->take(bytes)) return nullptr;
  try {
    auto* const buffer = new Buffer{engine, engine->device().allocate(bytes, "buffer of ggml")};
    return ggml_backend_buffer_init(type, buffer_interface(), buffer, size);
  } catch (const std::exception& error) {
    engine->give_back(bytes);
    std::fprintf(stderr, "kiln: %s\n", error.what());
    return nullptr;
  }
}

const char* type_name(ggml_backend_buffer_type_t) { return "Kiln"; }
std::size_t alignment(ggml_backend_buffer_type_t) { return 256; }

} // namespace

bool start_copy(const kiln::Device& device, const ggml_tensor& from, ggml_tensor& to) {
  const ggml_backend_buffer_t source = buffer_below(from), target = buffer_below(to);
  if (!source || !target || source->iface.free_buffer != free_buffer || target->iface.free_buffer != free_buffer) return false;
  if (buffer_of(source).engine != buffer_of(target).engine) return false;
  device.start_copy_on_device(to.data, from.data, ggml_nbytes(&from));
  return true;
}

ggml_backend_buffer_type_i buffer_type_interface() {
  ggml_backend_buffer_type_i i{};
  i.get_name = type_name;
  i.alloc_buffer = alloc_buffer;
  i.get_alignment = alignment;
  return i;
}

} // namespace kiln_ggml

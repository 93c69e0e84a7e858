// What the C ABI says about itself, about specs and about types.
#include "runtime/c/text.h"
#include "gen/spec/op.h"
#include "gen/spec/spec.h"
#include "runtime/c/handles.h"
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <new>

namespace kiln::c {
namespace {

std::string operations_text() {
  std::string text;
  for (const Op op : pointwise_ops()) {
    const OpInfo& known = info(op);
    const bool is_bool = known.kind == OpKind::compare || known.kind == OpKind::logic;
    text += fmt::format(R"({}{{"name": "{}", "operands": {}, "gives": "{}"}})", text.empty() ? "" : ",\n ", known.name, known.arity,
                        is_bool ? "bool" : "f32");
  }
  return "[" + text + "]";
}

// The element at `index` as the low bits of a number. Kiln's devices and its hosts are little-endian.
std::uint32_t bits_at(const void* from, std::size_t index, DType type) {
  if (is_packed(type)) return std::to_integer<std::uint32_t>(static_cast<const std::byte*>(from)[index / 2]) >> (index % 2 * 4) & 15;
  const auto bytes = static_cast<std::size_t>(size_bytes(type));
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(from) + index * bytes, bytes);
  return static_cast<std::uint32_t>(bits); // to_f32 takes the low half of an i64
}

void put_bits(void* to, std::size_t index, DType type, std::uint32_t bits) {
  if (is_packed(type)) { // even elements come first
    std::byte& byte = static_cast<std::byte*>(to)[index / 2];
    byte = index % 2 == 0 ? std::byte(bits) : byte | std::byte(bits) << 4;
    return;
  }
  const auto bytes = static_cast<std::size_t>(size_bytes(type));
  const auto wide = type == i64 ? static_cast<std::uint64_t>(static_cast<std::int32_t>(bits)) : bits;
  std::memcpy(static_cast<std::byte*>(to) + index * bytes, &wide, bytes);
}

} // namespace

char* copy_text(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

} // namespace kiln::c

using namespace kiln;

extern "C" {

uint32_t kiln_c_version(void) { return std::uint32_t{KILN_C_MAJOR} << 16 | KILN_C_MINOR; }
const char* kiln_release(void) { return KILN_RELEASE; }
void kiln_text_free(char* text) { std::free(text); }

kiln_status kiln_c_check(uint32_t major, uint32_t minor) {
  return c::guarded([&] {
    constexpr std::uint32_t own_major = KILN_C_MAJOR, own_minor = KILN_C_MINOR;
    if (major == own_major && minor <= own_minor) return;
    throw UserError(
        "libkiln_c",
        fmt::format("it has version {}.{} of the C ABI, and the program was compiled for {}.{}", own_major, own_minor, major, minor),
        major == own_major ? "install a newer Kiln" : "compile the program with the kiln_c.h of the Kiln that it loads");
  });
}

kiln_status kiln_spec_check(const char* spec, char** canonical) {
  return c::guarded([&] {
    c::require(spec, "kiln_spec_check", "spec");
    const KernelSpec parsed = parse_spec(spec);
    validate(parsed);
    if (canonical != nullptr) *canonical = c::copy_text(to_text(parsed));
  });
}

const char* kiln_operations(void) {
  static const std::string text = c::operations_text();
  return text.c_str();
}

kiln_status kiln_type_bytes(const char* dtype, size_t* bytes) {
  return c::guarded([&] {
    c::require(bytes, "kiln_type_bytes", "bytes");
    const DType type = c::dtype_of(dtype, "kiln_type_bytes");
    if (is_packed(type))
      throw UserError("kiln_type_bytes", fmt::format("elements of {} have {} bits", to_string(type), size_bits(type)),
                      "count two elements a byte");
    *bytes = static_cast<std::size_t>(size_bytes(type));
  });
}

kiln_status kiln_type_max(const char* dtype, double* largest) {
  return c::guarded([&] {
    c::require(largest, "kiln_type_max", "largest");
    const DType type = c::dtype_of(dtype, "kiln_type_max");
    if (type == boolean) throw UserError("kiln_type_max", "bool has no largest number", "give a type of numbers");
    *largest = max_finite(type);
  });
}

kiln_status kiln_encode(const char* dtype, const float* from, void* to, size_t count) {
  return c::guarded([&] {
    const DType type = c::dtype_of(dtype, "kiln_encode");
    if (count != 0) c::require(from, "kiln_encode", "from"), c::require(to, "kiln_encode", "to");
    for (std::size_t i = 0; i < count; ++i) c::put_bits(to, i, type, from_f32(type, from[i]));
  });
}

kiln_status kiln_decode(const char* dtype, const void* from, float* to, size_t count) {
  return c::guarded([&] {
    const DType type = c::dtype_of(dtype, "kiln_decode");
    if (count != 0) c::require(from, "kiln_decode", "from"), c::require(to, "kiln_decode", "to");
    for (std::size_t i = 0; i < count; ++i) to[i] = to_f32(type, c::bits_at(from, i, type));
  });
}

} // extern "C"

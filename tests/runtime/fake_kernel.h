// Entries without a compiler: small, valid in every checked respect, and different for each name.
#pragma once
#include "isa_checks/target/target_table.h"
#include "runtime/cache/cache.h"
#include <cstring>
#include <filesystem>
#include <string>

namespace kiln::test {

inline KernelRequest fake_request(const std::string& name, const std::string& arch = "gfx942") {
  return {.spec = "kernel " + name + "\ndim rows\ninput x: f16[rows, 64]\noutput y: f16[rows, 64] = x\n",
          .arch = arch,
          .overrides = {},
          .options = {}};
}

// An ELF header of the architecture and then noise that depends on the name.
inline std::string fake_object(const std::string& name, const std::string& arch, std::size_t size = 600) {
  std::string bytes(size, '\0');
  std::memcpy(bytes.data(), "\177ELF\2\1\1\100", 8);
  const std::uint16_t machine = 224;
  const std::uint32_t flags = isa::target_facts(arch).elf_machine;
  std::memcpy(bytes.data() + 18, &machine, sizeof machine);
  std::memcpy(bytes.data() + 48, &flags, sizeof flags);
  std::uint64_t state = std::hash<std::string>()(name);
  for (std::size_t i = 64; i < size; ++i) bytes[i] = static_cast<char>((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
  return bytes;
}

inline const char* const fake_compiler = "fake compiler 1";

// The folder of its entry in a cache folder.
inline std::filesystem::path entry_path(const std::filesystem::path& cache, const KernelRequest& request) {
  const std::string key = cache_key(request, fake_compiler).hex;
  return cache / "v1" / key.substr(0, 2) / key;
}

inline EntryFiles fake_entry(const KernelRequest& request, std::size_t object_size = 600, const std::string& compiler = fake_compiler) {
  KernelSource source;
  source.name = kernel_name(request);
  source.arch = request.arch;
  source.text = "// " + source.name + "\n";
  source.arguments = {
      {.name = "x", .kind = ArgumentKind::input, .dtype = DType::f16, .tensor = {}, .offset = 0, .size = 8, .alignment = 16},
      {.name = "rows", .kind = ArgumentKind::size, .dtype = DType::i32, .tensor = {}, .offset = 8, .size = 4, .alignment = 0}};
  source.launch = {.threads = 256, .dims = {dynamic("rows", 1, 64)}, .units = 1, .units_per_block = 4, .blocks_per_unit = 1};
  return make_entry(request, source, fake_object(source.name, request.arch, object_size),
                    {.compiler = compiler,
                     .llvm = "none",
                     .schedule = "none",
                     .rejected = {},
                     .facts = "{\"instructions\": 7}",
                     .contract = "{\"met\": true}"});
}

inline std::string identify(const Environment&) { return fake_compiler; }

struct FakeCache {
  std::shared_ptr<EventLog> events = std::make_shared<EventLog>(LogFunction());
  KernelCache cache;
  explicit FakeCache(CacheOptions options) : cache(std::move(options), events, identify) {}
  FakeCache(const std::filesystem::path& folder, std::uint64_t max_bytes = 1u << 30)
      : FakeCache(CacheOptions{.folder = folder, .layers = {}, .max_bytes = max_bytes, .remote = {}}) {}
};

} // namespace kiln::test

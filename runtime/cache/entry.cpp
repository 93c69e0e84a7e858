// CachedKernel and the files of an entry: meta.json is written and read here, and nowhere else.
#include "runtime/cache/entry.h"
#include "isa_checks/target/target_table.h"
#include "runtime/cache/meta_reader.h"
#include "runtime/digest.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln {
namespace {

using Json = nlohmann::ordered_json;

// meta.json ends in a checksum of all that comes before it.
constexpr std::string_view seal_begin = ",\n \"meta_sha256\": \"", seal_end = "\"\n}\n";

std::string sealed(const Json& json) {
  std::string text = json.dump(1);
  text.resize(text.size() - 2); // "\n}"
  const std::string digest = sha256(text);
  return fmt::format("{}{}{}{}", text, seal_begin, digest, seal_end);
}

void check_seal(std::string_view meta) {
  const std::size_t tail = seal_begin.size() + 64 + seal_end.size();
  if (meta.size() <= tail) throw CorruptEntry(fmt::format("meta.json has {} bytes only", meta.size()));
  const std::string_view body = meta.substr(0, meta.size() - tail), seal = meta.substr(body.size());
  if (!seal.starts_with(seal_begin) || !seal.ends_with(seal_end)) throw CorruptEntry("meta.json does not end in its checksum");
  if (seal.substr(seal_begin.size(), 64) != sha256(body)) throw CorruptEntry("meta.json does not have its checksum");
}

Json dim_json(const Dim& dim) {
  if (!dim.is_dynamic()) return dim.size();
  Json json{{"name", dim.name()}};
  if (dim.min()) json["min"] = *dim.min();
  if (dim.max()) json["max"] = *dim.max();
  return json;
}

Dim dim_of(MetaReader& in) {
  if (in.is_number()) return Dim(in.number<std::int64_t>());
  std::optional<std::int64_t> bounds[2];
  in.open('{');
  in.name("name");
  const std::string name = in.text();
  while (!in.close('}')) {
    const std::string bound = in.name();
    if (bound != "min" && bound != "max") throw CorruptEntry(fmt::format("\"{}\" is no bound of a size", bound));
    bounds[bound == "max" ? 1 : 0] = in.number<std::int64_t>();
  }
  try {
    return dynamic(name, bounds[0], bounds[1]);
  } catch (const Error& error) {
    throw CorruptEntry(fmt::format("meta.json is not as this Kiln writes it: {}", error.what()));
  }
}

template <typename Integer> void read(MetaReader& in, std::string_view name, Integer& value) {
  in.name(name);
  value = in.number<Integer>();
}
void read(MetaReader& in, std::string_view name, std::string& value) {
  in.name(name);
  value = in.text();
}

// Structures are taken apart by bindings, so that a new member does not compile until it is written here.
Json launch_json(const Launch& launch) {
  const auto& [threads, dims, units, units_per_block, blocks_per_unit, behind] = launch;
  Json dims_json = Json::array();
  for (const Dim& dim : dims) dims_json.push_back(dim_json(dim));
  Json json{{"threads", threads},
            {"dims", std::move(dims_json)},
            {"units", units},
            {"units_per_block", units_per_block},
            {"blocks_per_unit", blocks_per_unit}};
  for (const Launch& other : behind) json["behind"].push_back(launch_json(other)); // of several problems only
  return json;
}

Launch launch_of(MetaReader& in, bool is_behind = false) {
  Launch launch;
  in.open('{');
  read(in, "threads", launch.threads);
  in.name("dims");
  in.open('[');
  while (!in.close(']')) launch.dims.push_back(dim_of(in));
  read(in, "units", launch.units);
  read(in, "units_per_block", launch.units_per_block);
  read(in, "blocks_per_unit", launch.blocks_per_unit);
  if (in.close('}')) return launch;
  in.name("behind");
  in.open('[');
  if (is_behind) throw CorruptEntry("it has problems behind a problem that is behind another one");
  while (!in.close(']')) launch.behind.push_back(launch_of(in, true));
  in.end('}');
  return launch;
}

Json argument_json(const KernelArgument& argument) {
  const auto& [argument_name, kind, dtype, tensor, offset, size, alignment] = argument;
  return {{"name", argument_name}, {"kind", to_string(kind)}, {"dtype", to_string(dtype)}, {"tensor", tensor}, {"offset", offset},
          {"size", size},          {"alignment", alignment}};
}

ArgumentKind kind_of(const std::string& word) {
  using enum ArgumentKind;
  for (const ArgumentKind kind : {input, output, in_place, scalar, size, stride, workspace})
    if (to_string(kind) == word) return kind;
  throw CorruptEntry(fmt::format("\"{}\" is no kind of argument", word));
}

KernelArgument argument_of(MetaReader& in) {
  KernelArgument argument;
  std::string kind, dtype;
  in.open('{');
  read(in, "name", argument.name);
  read(in, "kind", kind);
  read(in, "dtype", dtype);
  read(in, "tensor", argument.tensor);
  read(in, "offset", argument.offset);
  read(in, "size", argument.size);
  read(in, "alignment", argument.alignment);
  in.end('}');
  const std::optional<DType> type = parse_dtype(dtype);
  if (!type) throw CorruptEntry(fmt::format("\"{}\" is no type", dtype));
  argument.kind = kind_of(kind);
  argument.dtype = *type;
  return argument;
}

Json file_json(const std::string& bytes) { return {{"bytes", bytes.size()}, {"sha256", sha256(bytes)}}; }

struct FileFacts {
  std::uint64_t bytes = 0;
  std::string sha256;
};

FileFacts file_of(MetaReader& in, const char* file) {
  FileFacts facts;
  in.name(file);
  in.open('{');
  read(in, "bytes", facts.bytes);
  read(in, "sha256", facts.sha256);
  in.end('}');
  return facts;
}

void check_file(const FileFacts& facts, const char* file, const std::string& bytes) {
  if (facts.bytes != bytes.size()) throw CorruptEntry(fmt::format("{} has {} bytes instead of {}", file, bytes.size(), facts.bytes));
  if (facts.sha256 != sha256(bytes)) throw CorruptEntry(fmt::format("{} does not have its checksum", file));
}

// The members before "schedule", which is all that a load needs. The seal was checked before, so what is wrong here was written
// by another Kiln, or by somebody else.
struct Head {
  CachedKernel kernel; // without object and meta
  FileFacts object, source;
};

Head head_of(std::string_view meta) {
  MetaReader in(meta);
  Head head;
  CachedKernel& kernel = head.kernel;
  in.open('{');
  read(in, "kernel", kernel.name);
  read(in, "key", kernel.key.hex);
  in.name("request");
  in.open('{');
  while (!in.close('}')) {
    std::string field = in.name();
    kernel.key.fields.emplace_back(std::move(field), in.text());
  }
  read(in, "arch", kernel.arch);
  in.name("arguments");
  in.open('[');
  while (!in.close(']')) kernel.arguments.push_back(argument_of(in));
  in.name("launch");
  kernel.launch = launch_of(in);
  read(in, "workspace_bytes", kernel.workspace_bytes);
  in.name("files");
  in.open('{');
  head.object = file_of(in, object_file);
  head.source = file_of(in, source_file);
  in.end('}');
  in.name("schedule");
  return head;
}

void check_key(const CacheKey& key, const CacheKey& expected) {
  if (key == expected) return;
  for (const auto& [name, value] : expected.fields) {
    const auto found = std::ranges::find(key.fields, name, &std::pair<std::string, std::string>::first);
    if (found == key.fields.end()) throw CorruptEntry(fmt::format("its key has no field {}", name));
    if (found->second != value) throw CorruptEntry(fmt::format("it is of another kernel: the field {} of its key differs", name));
  }
  throw CorruptEntry("it is of another kernel: its key differs");
}

// What the ELF header says, whatever any checksum says: gfx942 code must never reach a gfx950.
void check_machine(const std::string& object, const std::string& arch) {
  constexpr std::size_t machine_at = 18, flags_at = 48, header_size = 64;
  constexpr std::uint16_t amdgpu = 224; // EM_AMDGPU
  std::uint16_t machine = 0;
  std::uint32_t flags = 0;
  if (object.size() < header_size || !object.starts_with("\177ELF")) throw CorruptEntry("kernel.co is no ELF file");
  std::memcpy(&machine, object.data() + machine_at, sizeof machine);
  std::memcpy(&flags, object.data() + flags_at, sizeof flags);
  const isa::TargetFacts* target = machine == amdgpu ? isa::find_target_by_machine(flags & 0xffu) : nullptr;
  if (target == nullptr || target->name != arch)
    throw CorruptEntry(fmt::format("kernel.co is for {}, not for {}", target == nullptr ? "no known GPU" : target->name, arch));
}

} // namespace

EntryFiles make_entry(const KernelRequest& request, const KernelSource& source, std::string object, const EntryFacts& facts) {
  const auto& [kernel_name, arch, text, spec_lines, arguments, launch, workspace_bytes] = source; // the text is in kernel.hip
  EntryFiles files{.meta = {}, .object = std::move(object), .source = self_contained(source)};
  const CacheKey key = cache_key(request, facts.compiler);
  Json arguments_json = Json::array(), fields = Json::object();
  for (const KernelArgument& argument : arguments) arguments_json.push_back(argument_json(argument));
  for (const auto& [name, value] : key.fields) fields[name] = value;
  // What a load needs comes first: head_of ends at "schedule".
  files.meta = sealed({{"kernel", kernel_name},
                       {"key", key.hex},
                       {"request", std::move(fields)},
                       {"arch", arch},
                       {"arguments", std::move(arguments_json)},
                       {"launch", launch_json(launch)},
                       {"workspace_bytes", workspace_bytes},
                       {"files", {{object_file, file_json(files.object)}, {source_file, file_json(files.source)}}},
                       {"schedule", facts.schedule},
                       {"rejected", facts.rejected},
                       {"compiler", facts.compiler},
                       {"llvm", facts.llvm},
                       {"contract", Json::parse(facts.contract)},
                       {"facts", Json::parse(facts.facts)}});
  return files;
}

EntryFiles make_entry(const KernelRequest& request, const BuiltKernel& built) {
  EntryFacts facts{.compiler = built.object.compiler,
                   .llvm = built.object.llvm,
                   .schedule = to_text(built.schedule),
                   .rejected = {},
                   .facts = isa::to_json(built.facts),
                   .contract = isa::to_json(built.report)};
  for (const RejectedSchedule& rejected : built.rejected)
    facts.rejected.push_back(fmt::format("{}\n{}", to_text(rejected.schedule), isa::to_text(rejected.report)));
  return make_entry(request, built.source, {built.object.bytes.begin(), built.object.bytes.end()}, facts);
}

CachedKernel read_entry(std::string meta, std::string object, const CacheKey* expected) {
  check_seal(meta);
  Head head = head_of(meta);
  CachedKernel& kernel = head.kernel;
  if (expected != nullptr) check_key(kernel.key, *expected);
  else if (kernel.key.hex != digest_of(kernel.key.fields)) throw CorruptEntry("its key is not the digest of its fields");
  check_file(head.object, object_file, object);
  check_machine(object, kernel.arch);
  check_launchable(kernel);
  kernel.object = std::move(object);
  kernel.meta = std::move(meta);
  return std::move(kernel);
}

void check_source(const std::string& meta, const std::string& source) {
  check_seal(meta);
  check_file(head_of(meta).source, source_file, source);
}

} // namespace kiln

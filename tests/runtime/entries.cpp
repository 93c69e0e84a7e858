// Entries and keys: what is in a key, and that nothing but an intact entry for the very key is ever served.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/digest.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/fake_kernel.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>
#include <set>
#include <sys/stat.h>

namespace entries_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

fs::path entry_folder(const fs::path& cache, const std::string& key) { return cache / "v1" / key.substr(0, 2) / key; }

bool is_served(KernelCache& cache, const KernelRequest& request) { return cache.find(request).has_value(); }

} // namespace

TEST_CASE("SHA-256 of known texts") { // FIPS 180-2, appendix B
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256({"abcdbcdecdefdefgefghfghighij", "hijkijkljklmklmnlmnomnopnopq"}) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("every part of a request changes the key, and no path or time is in it") {
  std::vector<KernelRequest> requests(11, fake_request("k"));
  requests[1].spec += " ";
  requests[2].arch = "gfx950";
  requests[3].overrides = {"vec=4"};
  requests[4].overrides = {"vec=4", "prefetch_depth=2"};
  requests[5].overrides = {"vec=4\nahead=2", ""};
  requests[6].options.warnings_as_errors = true;
  requests[7].options.replace_builtin_header = false;
  requests[8].options.environment.compiler_variables = {"AMD_COMGR_X=1"};
  requests[9].options.environment.line_tables = true;
  requests[10].options.preload_arguments = true;
  std::set<std::string> keys;
  for (const KernelRequest& request : requests) keys.insert(cache_key(request, fake_compiler).hex);
  keys.insert(cache_key(requests[0], "another compiler").hex);
  CHECK(keys.size() == requests.size() + 1);

  KernelRequest elsewhere = requests[0];
  elsewhere.options.environment.hiprtc_path = "/elsewhere/libhiprtc.so";
  elsewhere.options.environment.dump_dir = "/elsewhere";
  elsewhere.options.environment.cache_dir = "/elsewhere";
  CHECK(cache_key(elsewhere, fake_compiler) == cache_key(requests[0], fake_compiler));
  CHECK(generator_hash().size() == 64);
}

TEST_CASE("an entry gives back what went into it, and is the same bytes every time") {
  const KernelRequest request = fake_request("k");
  const EntryFiles files = fake_entry(request), again = fake_entry(request);
  CHECK(files.meta == again.meta);
  const CacheKey key = cache_key(request, fake_compiler);
  const CachedKernel kernel = read_entry(files.meta, files.object, &key);
  CHECK(kernel.name == "k");
  CHECK(kernel.arch == "gfx942");
  CHECK(kernel.object == files.object);
  REQUIRE(kernel.arguments.size() == 2);
  CHECK(kernel.arguments[1].kind == ArgumentKind::size);
  CHECK(kernel.launch.dims == std::vector<Dim>{dynamic("rows", 1, 64)});
  CHECK(kernel.launch.units_per_block == 4);
}

TEST_CASE("what a launch needs of any kernel comes out of its entry as it went in") {
  for (const CatalogEntry& catalog_entry : catalog())
    for (const char* arch : {"gfx942", "gfx950"})
      for (const std::int64_t cols : {100, 4096}) {
        CAPTURE(catalog_entry.name);
        const Target gpu = target(arch);
        const CatalogOptions options{.cols = cols, .fp8 = gpu.fp8(), .n = catalog_entry.is.ranked ? 256 : 4096, .kv_heads = 2};
        if (why_not(catalog_entry, options)) continue;
        const KernelSpec spec = catalog_entry.build(options);
        const Plan plan = make_plan(spec, gpu);
        const KernelSource source = emit_source(plan, choose_schedule(plan, gpu), gpu);
        const KernelRequest request = kernel_request(spec, gpu, {}, {});
        const EntryFiles files =
            make_entry(request, source, fake_object("k", arch),
                       {.compiler = fake_compiler, .llvm = {}, .schedule = {}, .rejected = {}, .facts = "{}", .contract = "{}"});
        const CachedKernel kernel = read_entry(files.meta, files.object, nullptr);
        CHECK(kernel.arguments == source.arguments);
        CHECK(kernel.launch == source.launch);
        CHECK(kernel.workspace_bytes == source.workspace_bytes);
        CHECK(kernel.name == source.name);
      }
}

TEST_CASE("texts of every kind come out of an entry as they went in") {
  KernelRequest request = fake_request("k");
  request.options.environment.compiler_variables = {"CPATH=/\xc3\xa9 \"quoted\" \\ \b\f\n\r\t \x01\x1f\x7f"};
  const CacheKey key = cache_key(request, fake_compiler);
  const EntryFiles files = fake_entry(request);
  CHECK(read_entry(files.meta, files.object, &key).key == key);
  CHECK(read_entry(files.meta, files.object, nullptr).key == key);
}

TEST_CASE("an entry with any bit flipped in any byte, or cut at any byte, is not served") {
  const Scratch scratch;
  const KernelRequest request = fake_request("k");
  {
    FakeCache(scratch.path).cache.find_or_make(request, [&] { return fake_entry(request); });
  }
  // As a read-only layer, so that the entry stays where it is.
  FakeCache reader(CacheOptions{.folder = {}, .layers = {scratch.path}, .remote = {}});
  REQUIRE(is_served(reader.cache, request));
  const fs::path folder = entry_folder(scratch.path, cache_key(request, fake_compiler).hex);
  int wrong = 0;
  for (const char* file : {meta_file, object_file}) {
    const std::string intact = contents(folder / file);
    for (std::size_t at = 0; at < intact.size(); ++at) {
      std::string flipped = intact;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
      write(folder / file, flipped);
      wrong += is_served(reader.cache, request) ? 1 : 0;
      write(folder / file, intact.substr(0, at));
      wrong += is_served(reader.cache, request) ? 1 : 0;
    }
    write(folder / file, intact);
  }
  CHECK(wrong == 0);
  CHECK(is_served(reader.cache, request));
  CHECK(reader.events->count("entry_quarantined") > 1000);
  // The source is for people: it is checked when somebody reads it.
  const std::string source = contents(folder / source_file), meta = contents(folder / meta_file);
  CHECK_NOTHROW(check_source(meta, source));
  for (std::size_t at = 0; at < source.size(); ++at) {
    std::string flipped = source;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    CHECK_THROWS_AS(check_source(meta, flipped), CorruptEntry);
  }
}

TEST_CASE("an entry in another's place, for another architecture, or of another Kiln is not served, and makes room") {
  const Scratch scratch;
  FakeCache fake(scratch.path);
  const KernelRequest one = fake_request("one"), two = fake_request("two"), other_arch = fake_request("one", "gfx950");
  const auto path = [&](const KernelRequest& request) { return entry_folder(scratch.path, cache_key(request, fake_compiler).hex); };
  const auto make = [&](const KernelRequest& request) { return fake.cache.find_or_make(request, [&] { return fake_entry(request); }); };
  for (const KernelRequest* victim : {&two, &other_arch}) {
    make(one);
    fs::create_directories(path(*victim).parent_path());
    fs::rename(path(one), path(*victim));
    CHECK_FALSE(is_served(fake.cache, *victim));
    CHECK_FALSE(fs::exists(path(*victim)));
    const Found found = make(*victim);
    CHECK(found.origin == Origin::compiled);
    CHECK(found.kernel.arch == victim->arch);
    CHECK(make(*victim).origin == Origin::folder);
  }
  // Even where somebody made the key fit: the ELF header decides.
  EntryFiles forged = fake_entry(other_arch);
  const std::string right = fake_object("one", "gfx950"), wrong = fake_object("one", "gfx942");
  KernelSource source;
  source.name = "one";
  source.arch = "gfx950";
  source.launch.threads = 64;
  forged = make_entry(other_arch, source, wrong,
                      {.compiler = fake_compiler, .llvm = {}, .schedule = {}, .rejected = {}, .facts = "{}", .contract = "{}"});
  CHECK_THROWS_WITH_AS(read_entry(forged.meta, forged.object, nullptr), "kernel.co is for gfx942, not for gfx950", CorruptEntry);
  forged = make_entry(other_arch, source, right,
                      {.compiler = fake_compiler, .llvm = {}, .schedule = {}, .rejected = {}, .facts = "{}", .contract = "{}"});
  CHECK_NOTHROW(read_entry(forged.meta, forged.object, nullptr));
}

TEST_CASE("two versions of Kiln share a cache and never each other's entries") {
  const Scratch scratch;
  FakeCache fake(scratch.path);
  const KernelRequest request = fake_request("k");
  const CacheKey key = cache_key(request, fake_compiler);
  // What another version would have written for the same spec: sealed correctly, with its own generator in the key.
  std::string meta = fake_entry(request).meta;
  CacheKey old_key = key;
  for (auto& [name, value] : old_key.fields)
    if (name == "generator") value = std::string(64, 'a');
  old_key.hex = digest_of(old_key.fields);
  meta.replace(meta.find(generator_hash()), 64, 64, 'a');
  meta.replace(meta.find(key.hex), 64, old_key.hex);
  const std::size_t seal = meta.rfind(",\n \"meta_sha256\"");
  const std::string body = meta.substr(0, seal);
  meta = body + ",\n \"meta_sha256\": \"" + sha256(body) + "\"\n}\n";
  EntryFiles old = fake_entry(request);
  old.meta = meta;
  CHECK_NOTHROW(read_entry(old.meta, old.object, nullptr)); // in itself it is fine
  REQUIRE(fake.cache.folder() != nullptr);
  fake.cache.folder()->publish(old_key.hex, old); // its own place
  fake.cache.folder()->publish(key.hex, old);     // and, forged, ours
  CHECK_FALSE(is_served(fake.cache, request));
  CHECK(fake.events->count("entry_quarantined") == 1);
  CHECK_NOTHROW(fake.cache.folder()->verify(fake.cache.folder()->list().front()));
  CHECK(fake.cache.find_or_make(request, [&] { return fake_entry(request); }).origin == Origin::compiled);
  CHECK(is_served(fake.cache, request));
}

TEST_CASE("a compile that gives another kernel's entry is a bug that reaches nobody") {
  const Scratch scratch;
  FakeCache fake(scratch.path);
  const KernelRequest one = fake_request("one"), two = fake_request("two");
  CHECK_THROWS_AS(fake.cache.find_or_make(one, [&] { return fake_entry(two); }), InternalError);
  EntryFiles mixed = fake_entry(one);
  mixed.object = fake_entry(two).object;
  CHECK_THROWS_AS(fake.cache.find_or_make(one, [&] { return mixed; }), InternalError);
  CHECK(fake.cache.folder()->list().empty());
}

TEST_CASE("what is quarantined says why, and is bounded") {
  const Scratch scratch;
  FakeCache fake(scratch.path);
  for (int i = 0; i < 40; ++i) {
    const KernelRequest request = fake_request("k" + std::to_string(i));
    fake.cache.find_or_make(request, [&] { return fake_entry(request); });
    write(entry_folder(scratch.path, cache_key(request, fake_compiler).hex) / object_file, "short");
    CHECK_FALSE(is_served(fake.cache, request));
  }
  std::size_t kept = 0;
  for (const auto& entry : fs::directory_iterator(scratch.path / "quarantine")) {
    CHECK(contents(entry.path() / "reason.txt").find("kernel.co has 5 bytes instead of 600") != std::string::npos);
    ++kept;
  }
  CHECK(kept == 32);
}

TEST_CASE("a layer made with another compiler is used as it was shipped; the writable folder is not") {
  const Scratch scratch;
  const KernelRequest request = fake_request("k");
  const fs::path shipped = scratch.path / "shipped", own = scratch.path / "own";
  {
    const CacheFolder layer(shipped, {.writable = true, .shipped = true});
    const EntryFiles files = fake_entry(request, 600, "their compiler");
    layer.publish(cache_key(request, "their compiler").hex, files);
    layer.add_compiler("their compiler");
    CacheFolder(own, {.writable = true}).publish(cache_key(request, "their compiler").hex, files);
  }
  FakeCache with_layer(CacheOptions{.folder = own, .layers = {shipped}, .remote = {}}), without(own);
  CHECK_FALSE(is_served(without.cache, request));
  const auto found = with_layer.cache.find(request);
  REQUIRE(found);
  CHECK(found->origin == Origin::layer);
}

TEST_CASE("folders that others could have written to are not trusted unless told to") {
  const Scratch scratch;
  const KernelRequest request = fake_request("k");
  {
    FakeCache(scratch.path / "c").cache.find_or_make(request, [&] { return fake_entry(request); });
  }
  CHECK((fs::status(scratch.path / "c").permissions() & fs::perms::all) == fs::perms::owner_all);
  chmod((scratch.path / "c").c_str(), 0777);
  FakeCache careful(scratch.path / "c"), as_layer(CacheOptions{.folder = {}, .layers = {scratch.path / "c"}, .remote = {}});
  FakeCache trusting(CacheOptions{.folder = scratch.path / "c", .layers = {}, .trust_shared = true, .remote = {}});
  CHECK_FALSE(is_served(careful.cache, request));
  CHECK(careful.events->count("cache_unusable") == 1);
  CHECK_FALSE(is_served(as_layer.cache, request));
  CHECK(as_layer.events->count("layer_unusable") == 1);
  CHECK(is_served(trusting.cache, request));
}

} // namespace entries_tests

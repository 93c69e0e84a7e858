// Line tables: -gline-tables-only names the source's lines and changes no instruction, for kernels of every family.
#include "gen/catalog/catalog.h"
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/object/code_object.h"
#include "runtime/build/build_kernel.h"
#include "tests/compile/run_cli.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

using namespace kiln;

namespace {

isa::CodeObject built_with_lines(const KernelSpec& spec, std::string_view arch, bool line_tables, CompilerKind compiler) {
  CompileOptions options = own_process_options(process_environment());
  options.environment.compiler = compiler;
  options.environment.line_tables = line_tables;
  const BuiltKernel kernel = build_kernel(spec, target(arch), options); // its contract holds with both
  return isa::load_code_object(kernel.object.bytes, kernel.object.name);
}

bool has_line_table(const isa::CodeObject& object) {
  return std::ranges::any_of(object.sections(), [](const isa::ElfSection& section) { return section.name == ".debug_line"; });
}

// An elementwise, two rowwise and a skinny product.
std::vector<KernelSpec> specs_with_lines() {
  return {parse_spec("kernel swiglu dim n input a: f16[n, 512] input b: f16[n, 512] output y: f16[n, 512] = silu(a) * b"),
          parse_spec(
              "kernel norm dim n input x: f16[n, 1000] input w: f16[1000] output y: f16[n, 1000] = x * rsqrt(row_mean(x * x) + 1e-6) * w"),
          parse_spec("kernel wide dim n input x: f32[n, 20000] let e = exp(x - row_max(x)) output y: f32[n, 20000] = e / row_sum(e)"),
          parse_spec("kernel gemm dim m [1..16] input a: f16[m, 1024] input b: f16[256, 1024] output c: f16[m, 256] = matmul_nt(a, b)")};
}

} // namespace

TEST_CASE("line tables change no instruction") {
  for (const CompilerKind compiler : {CompilerKind::hiprtc, CompilerKind::comgr})
    for (const std::string_view arch : known_archs())
      for (const KernelSpec& spec : specs_with_lines()) {
        if (compiler == CompilerKind::comgr && spec.name() != "norm") continue; // the same clang
        CAPTURE(arch);
        CAPTURE(spec.name());
        const isa::CodeObject plain = built_with_lines(spec, arch, false, compiler), lines = built_with_lines(spec, arch, true, compiler);
        CHECK(std::ranges::equal(plain.kernel(spec.name()).code, lines.kernel(spec.name()).code));
        CHECK_FALSE(has_line_table(plain));
        CHECK(has_line_table(lines));
      }
}

// The names of lines are those of to_text(spec): here "let t1 = ..." is line 5.
TEST_CASE("line tables name the line of the spec that an instruction computes") {
  const auto lines_of = [](const KernelSpec& spec, std::string_view arch, std::string_view mnemonic) {
    const isa::CodeObject object = built_with_lines(spec, arch, true, CompilerKind::hiprtc);
    const isa::KernelAnalysis analysis = isa::analyse(object, object.kernel(spec.name()));
    std::set<std::string> found;
    for (std::size_t i = 0; i < analysis.lines.size(); ++i)
      if (const isa::SourceLine& line = analysis.lines[i]; analysis.mnemonic(i).starts_with(mnemonic))
        found.insert(fmt::format("{}:{}", line.file.substr(line.file.rfind('/') + 1), line.line));
    return found;
  };
  using Names = std::set<std::string>;
  for (const std::string_view arch : known_archs()) {
    const auto named = [&](std::string_view name, int line) { return fmt::format("{}.{}.kiln:{}", name, arch, line); };
    const KernelSpec norm = parse_spec("kernel norm dim n input x: f16[n, 1024] input w: f16[1024] let r = rsqrt(row_mean(x * x) + 1e-6) "
                                       "output y: f16[n, 1024] = x * r * w output inverse: f32[n, 1] = r");
    REQUIRE(to_text(norm).find("input w: f16[1024]\nlet t1 = rsqrt") != std::string::npos);
    CHECK(lines_of(norm, arch, "v_rsq_f32") == Names{named("norm", 5)});
    CHECK(lines_of(norm, arch, "global_store_dwordx4").contains(named("norm", 6)));
    const KernelSpec gemm =
        parse_spec("kernel gemm dim m [1..16] input a: f16[m, 1024] input b: f16[256, 1024] output c: f16[m, 256] = matmul_nt(a, b)");
    CHECK(lines_of(gemm, arch, "v_mfma") == Names{named("gemm", 5)});
  }
}

TEST_CASE("kiln aot --line-tables fills entries that a Jit with KILN_LINE_TABLES finds, and one without does not") {
  const test::Scratch scratch;
  const std::string manifest = (scratch.path / "m.jsonl").string(), cache = (scratch.path / "c").string();
  std::ofstream(manifest) << R"({"catalog": "rmsnorm", "cols": 512, "dtype": "f16"})" << '\n';
  const std::string to_cache = "aot " + manifest + " --arch gfx950 --json -o " + cache;
  const auto counts = [](const test::CliResult& result) { return nlohmann::json::parse(result.out).at("counts"); };
  CHECK(counts(test::kiln(to_cache + " --line-tables"))["compiled"] == 1);
  CHECK(counts(test::kiln(to_cache, "KILN_LINE_TABLES=1"))["cached"] == 1);
  CHECK(counts(test::kiln(to_cache))["compiled"] == 1);
  const std::string ninja = (scratch.path / "build.ninja").string();
  CHECK(test::kiln(to_cache + " --line-tables --emit-ninja " + ninja).exit_code == 0);
  CHECK(test::contents(ninja).find("--line-tables") != std::string::npos);
}

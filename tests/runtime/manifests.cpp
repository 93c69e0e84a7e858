// The manifests of examples/: every kernel of the models can be planned and scheduled, and one of each kind compiles and keeps its
// contract.
#include "gen/families/schedule.h"
#include "runtime/aot/manifest.h"
#include "runtime/build/build_kernel.h"
#include <algorithm>
#include <doctest/doctest.h>

namespace manifests_tests {
using namespace kiln;

namespace {

struct Model {
  const char* file;
  std::size_t kernels; // of both architectures
  std::vector<std::string> compiled;
};

const Model models[] = {
    {"llama-3-70b-decode-tp8.jsonl",
     116,
     {"add_rmsnorm_quant m=8 cols=8192 epsilon=1e-05 fp8=e4m3fnuz", "projection m=8 n=1280 k=8192 fp8=e4m3fnuz",
      "gemm_swiglu_quant m=16 n=3584 k=8192 dtype=e4m3fnuz",
      "norm_swiglu_quant m=1 n=3584 both=7168 k=8192 parts=256 epsilon=1e-05 fp8=e4m3fn",
      "projection_residual m=1 n=8192 k=3584 parts=256 fp8=e4m3fn"}},
    {"deepseek-v3-decode-tp8.jsonl",
     214,
     {"add_rmsnorm_group_quant cols=7168 groups=56 epsilon=1e-06 fp8=e4m3fn fp8_max=448",
      "block_scaled_swiglu m=8 n=256 n2=512 k=7168 n2_groups=4 k_groups=56 fp8=e4m3fn",
      "router m=1 n=256 k=7168 top=8 sigmoid=true sorted=true dtype=bf16", "by_head m=16 heads=16 ends=17 n=576 k=192"}},
    {"qwen3-next-80b-decode-tp4.jsonl",
     134,
     {"conv1d_update cols=2048 tokens=2 dtype=bf16", "gated_delta_update heads=8 kv_heads=4 d=128 cols=128 tokens=4 dtype=bf16",
      "gated_norm cols=128 dtype=bf16"}},
};

std::vector<AotKernel> kernels_of(const Model& model, const std::vector<std::string>& archs) {
  return read_manifest(std::string(KILN_SOURCE_DIR "/examples/manifests/") + model.file, archs, {});
}

} // namespace

TEST_CASE("every kernel of the models' manifests has a schedule on both architectures") {
  for (const Model& model : models) {
    const std::vector<AotKernel> kernels = kernels_of(model, {"gfx942", "gfx950"});
    CHECK(kernels.size() == model.kernels);
    for (const AotKernel& kernel : kernels) {
      CAPTURE(kernel.title);
      const Target gpu = target(kernel.request.arch);
      CHECK_NOTHROW(choose_schedule(make_plan(parse_spec(kernel.request.spec), gpu), gpu));
    }
  }
}

TEST_CASE("a kernel of each kind of the models' manifests compiles and keeps its contract") {
  for (const Model& model : models)
    for (const std::string& title : model.compiled) {
      CAPTURE(title);
      const std::string arch = title.find("fnuz") != title.npos ? "gfx942" : "gfx950";
      const std::vector<AotKernel> kernels = kernels_of(model, {arch});
      const auto kernel = std::ranges::find(kernels, title, &AotKernel::title);
      REQUIRE(kernel != kernels.end());
      CHECK(build_kernel(parse_spec(kernel->request.spec), target(arch)).report.met());
    }
}

} // namespace manifests_tests

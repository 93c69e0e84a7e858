// The catalogue: ready specs of the kernels that inference engines ask for.
#pragma once
#include "gen/error.h"
#include "gen/spec/spec.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kiln {

struct CatalogOptions {
  std::int64_t cols = 4096;
  std::int64_t max_rows = 0;          // row entries: the most rows of a launch; 0: any number
  DType dtype = f16;                  // of activations and weights: f16, bf16 or f32
  DType fp8 = e4m3fn;                 // of quantised values; target.fp8() is the native one
  DType mx = e2m1;                    // mx entries: the elements, e2m1 (MXFP4), e4m3fn or e5m2 (MXFP8)
  bool dynamic_scale = false;         // add_rmsnorm_quant: one scale a token, computed and written, in place of a given one
  bool in_place = false;              // add_rmsnorm_quant, rope, qk_norm, hadamard: outputs overwrite inputs of their shape
  std::int64_t group = 128;           // group_quant, group_dequant, gemm_w4a16: elements a scale; hadamard: columns of a block, 2 to 512
  std::int64_t side = 4, times = 20;  // sinkhorn: rows and columns of a matrix (2, 4, 8 or 16), and how often both are normalised
  bool transposed = false;            // group_quant, mx_quant, *_mx_quant, gemm_block_scaled, gemm_mx (a's): scales lie [groups, rows]
  std::int64_t top = 8;               // router, topk_softmax: ranks, 1 to 16
  bool sigmoid = false;               // router, topk_softmax: scores by sigmoid, with a bias for the choice; else softmax of the chosen
  std::int64_t m = 16;                // gemm entries: the most rows of a, 1 to 128
  std::int64_t n = 4096, k = 4096;    // gemm entries; `dtype` is the type of a and b, an fp8 or i8 too
  std::int64_t heads = 8;             // rope entries: heads of q, or of k and v; `cols` are those of a head
  bool interleaved = false;           // rope entries: pairs are neighbours, as in GPT-J; else halves of a head, as in GPT-NeoX and Llama
  bool head_norm = false;             // rope entries: an RMS norm of each head of q or k comes first, as in Qwen3
  bool fp8_cache = false;             // rope_kv_write: the cache is of type `fp8`, with a scale for k and one for v
  DType index = i64;                  // of ids, positions and slots: i64 or i32
  std::int64_t kv_heads = 8, d = 128; // attention entries, qk_norm: heads of k; attention: elements of a head, 576: MLA. `heads`: of q
  std::int64_t length = 8192;         // attention entries: keys that a sequence has room for
  std::int64_t page = 16;             // attention_paged: keys of a page
  DType cache = f32;                  // attention entries: type of keys and values; f32: `dtype`
  std::int64_t experts = 64;          // expert entries: how many there are, 1 to 1024; a token has `top` of them
  DType weights = f32;                // expert products: type of b, e2m1 for MXFP4; f32: `dtype`. gemm_mx: type of b; f32: `mx`, that of a
  bool sorted = false;                // router: the pairs of tokens and experts sorted by expert too, as moe_sort does it
  bool packed_zeros = false;          // gemm_w4a16: zero points of 4 bits, eight a word in the order of columns, [groups, n / 8]
  DType state = f32;                  // gated_delta_update, ssm_update: of the state, f32, bf16, f16 or an fp8; conv1d_update's is of dtype
  std::int64_t tokens = 1;            // state entries: tokens of a sequence, 1 to 8; several keep the state behind each of them
  std::int64_t width = 4;             // conv1d_update: tokens of the window, 3 to 8
  bool per_channel = false;           // gated_delta_update: a gate for each of a head's columns, as in KDA; else one a head
  bool gate_first = false;            // gated_norm: what is normed is gated already
  std::int64_t rank = 16;             // lora entries: rows of a and columns of b, 8 to 64; `experts` is how many adapters there are
  bool preshuffled = false;           // gemm entries: b lies as preshuffle() of gen/spec/preshuffle.h puts it
};

// What an entry is, which decides what its options may be.
struct CatalogKind {
  bool gemm = false;      // m, n and k in place of cols
  bool rope = false;      // `heads` too, of qk_norm `kv_heads`; cols are even
  bool mx = false;        // `mx` too; cols, or k, are whole blocks of 32
  bool attention = false; // heads, kv_heads, d, length and the type of the cache in place of cols
  bool ranked = false;    // `top` and `sigmoid` too; cols, or n, are 1024 at most
  bool experts = false;   // `experts` and `top` in place of cols, or beside m, n and k
  bool blocks = false;    // cols are whole blocks of `group`
  bool state = false;     // a state by slot: `tokens`, and heads, kv_heads, d and the type of the state beside cols
  bool lora = false;      // `rank` and `experts` beside m, n and k
  bool matrices = false;  // cols are whole matrices of `side` rows and columns, which are normalised `times` times
};

// Rows are a run-time size, `dynamic("rows")`, up to options.max_rows if that is given, and columns are options.cols; of gemm entries, rows
// are `dynamic("m", 1, options.m)` and n and k are options.n and options.k; of attention entries, sequences are `dynamic("sequences")`.
struct CatalogEntry {
  std::string_view name;
  std::string_view doc;
  std::string_view options; // that its spec depends on, by the names of gen/catalog/options.h: "cols max_rows dtype"
  KernelSpec (*build)(const CatalogOptions& options);
  CatalogKind is = {};
};

std::span<const CatalogEntry> catalog();

// Why catalog_spec does not take the options; nothing when it does.
std::optional<Refusal> why_not(const CatalogEntry& entry, const CatalogOptions& options);

// The spec of the entry `name`. Throws UserError on an unknown name and on options that make no kernel.
// What the options of this entry are when nothing is said: those of CatalogOptions, but for entries that take fewer columns.
CatalogOptions default_options(std::string_view name);

KernelSpec catalog_spec(std::string_view name, const CatalogOptions& options);

} // namespace kiln

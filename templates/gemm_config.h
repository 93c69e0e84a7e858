// GemmConfig: how workgroups share C[m, n] = A[m, k] x B[n, k]^T for few rows m. Shared by the host and the device.
//
// The work is cut into steps: `tile_n` rows of B (of each product) by step_bytes() bytes of k. Steps are numbered along k
// first, tile after tile, and every workgroup takes a contiguous run of them, equal but for one step. A run is cut into
// segments where tiles end. The waves of a workgroup share the steps of a segment.
//
// With a matrix for each expert, rows are pairs of a token and one of its experts. A block is up to `rows` pairs of one expert, which
// share its weights; a tile is a block and `tile_n` columns, and blocks of the same columns follow each other. How many blocks there are
// is known at launch: workgroups take equal parts of any tiles.
#pragma once
#include "stream_k_config.h"

namespace kiln {

// What multiplies.
enum class GemmMethod {
  matrix,   // MFMA of 16 x 16 tiles
  matrix32, // MFMA of 32 x 32 tiles
  sparse,   // SMFMAC with each row of A as two 4:2-structured rows: up to 8 rows, half of the matrix instructions
  dot,      // no matrix instruction: lanes share k, dot products of packed numbers, a reduction across lanes
  producers, // waves that only load fill slots in LDS, from which the other waves multiply with MFMA of 16 x 16 tiles
  shared_rows, // MFMA of 16 x 16 tiles: the waves have columns each instead of steps, and share the rows of A, which pass through LDS
};

// How an operand lies in memory:
//   plain         numbers that are multiplied as they are, or widened to those of the other operand
//   block_scaled  8-bit numbers with an f32 scale for 128 elements of k, of B also for 128 rows; of both operands
//   int4          of B: two integers a byte, with a scale of A's type and a zero point for a group
//   mx            e2m1 or fp8 with a power of two for 32 elements of k
//   nvfp4         of B: e2m1 with an e4m3fn scale for 16 elements of k; two of those are a group
#define KILN_ENCODINGS(name) name(plain) name(block_scaled) name(int4) name(mx) name(nvfp4)
enum class Encoding {
#define KILN_ENCODING(name) name,
  KILN_ENCODINGS(KILN_ENCODING)
#undef KILN_ENCODING
};

struct OperandConfig {
  int bits = 0; // of an element
  Encoding encoding = Encoding::plain;
  int group = 0;                // elements of k with a common scale; 0: no scales
  bool scales_by_group = false; // of A: the scales of a group lie side by side, [group][row]; else those of a row do
  bool quantises = false;       // of A: rows of 16 bits are quantised to B's 8-bit type by their largest magnitudes before they are multiplied
  int norm_parts = 0;           // if those rows are normed first, with a weight for each column: how many numbers make the sum of a row's squares
  int zero_bytes = 0;           // of B: of a group's zero points of all rows, if those have 4 bits; 0: zero points of 8 bits, row after row
  bool preshuffled = false;     // of B: 16 rows by 16 bytes after another, see gen/spec/preshuffle.h

  constexpr bool plain() const { return encoding == Encoding::plain; }
  constexpr bool mx() const { return encoding == Encoding::mx; }
  // What a lane loads of scales and zero points beside a word of 16 bytes of its own; 0: nothing, or what all words of a step share.
  constexpr int word_scales() const { return encoding == Encoding::int4 ? 2 : mx() || encoding == Encoding::nvfp4 ? 1 : 0; }
  constexpr bool operator==(const OperandConfig&) const = default;
};

// The experts whose matrices multiply the rows of A.
struct ExpertsConfig {
  int count = 0, top = 0; // of all, and of a token; 0: one matrix for all rows
  int tokens = 0;         // at most
  int n = 0;              // rows of B of an expert: n of the config, or more if the products are columns of one
  bool of_pairs = false;  // A has a row for each pair, else for each token
  bool sums = false;      // the weighted sum over a token's experts

  constexpr int pairs() const { return tokens * top; } // at most
  constexpr bool operator==(const ExpertsConfig&) const = default;
};

struct GemmConfig {
  ExpertsConfig experts = {};
  int rows = 0;         // of A and C at most: the bound of m, up to 128; with experts, pairs of a block
  int n = 0, k = 0;     // of one product
  OperandConfig a = {}, b = {};
  bool staged = false;  // rows of A that are quantised lie in LDS, quantised once, while a workgroup multiplies them; else every step quantises anew
  GemmMethod method = GemmMethod::matrix;
  bool rows_at_end = false; // the last workgroup goes on with the rows of C, once all of it is in the workspace
  int epilogue_group = 0;   // columns of C that the epilogue reduces together, or that share bytes: whole groups in a tile; 0: none
  int products = 1;     // matrices B that the one A multiplies: 2 for a gate and its partner
  int tile_n = 64;      // columns of C that a workgroup computes at a time, of each product
  int waves = 4;        // of a workgroup
  int loads = 1;        // of 16 bytes that a lane makes from a row of B in a step: 1, 2 or 4
  int stages = 4;         // steps whose loads a wave keeps in flight; with producers, one that loads B
  int workgroups = 1;   // of the grid, whatever m is
  int vec = 4;          // consecutive elements of a row of C that a lane handles in the epilogue
  int b_producers = 0, a_producers = 0; // of the waves, those that only load B, and only A; 0 but for method producers
  int slots = 0;        // steps that LDS holds, of method producers
  bool direct = false;  // producers load straight into LDS, without registers
  int row_blocks = 1;   // of method shared_rows: parts of up to 64 rows of A, each with workgroups of its own
  int waves_per_eu = 0; // of a SIMD, that registers have to leave room for; 0: as the method wants it
  bool atomics = false; // partial sums of a tile meet by f32 atomics, in any order, instead of in a fixed order
  bool batch_invariant = false; // an element's sum has the same order for all `rows`, `tile_n` and `stages`: docs/batch_invariance.md

  constexpr bool by_expert() const { return experts.count > 0; }
  constexpr int blocks() const { return by_expert() ? blocks_of(experts.pairs()) : row_blocks; } // at most
  constexpr int blocks_of(int pairs) const { return (experts.count < pairs ? experts.count : pairs) + pairs / rows; } // at most, with experts
  constexpr int threads() const { return waves * wave_size; }
  constexpr bool has_producers() const { return method == GemmMethod::producers; }
  constexpr int step_a_bits() const { return staged ? b.bits : a.bits; } // as a step loads or takes an element of A
  constexpr bool quantises_steps() const { return a.quantises && !staged; }
  constexpr int summing_waves() const { return waves - b_producers - a_producers; }
  constexpr bool shares_rows() const { return method == GemmMethod::shared_rows; }
  constexpr bool is_matrix() const { return method == GemmMethod::matrix || method == GemmMethod::matrix32 || has_producers() || shares_rows(); }
  constexpr int edge() const { return method == GemmMethod::matrix32 ? 32 : 16; } // of the tiles of an MFMA
  constexpr int row_tiles() const { return ceil_div(ceil_div(rows, edge()), row_blocks); } // of A, for MFMA
  // Lanes that a load of B gives to a row. Side by side in dot, so that a row is contiguous; else a lane is one row further
  // than its neighbour, as MFMA wants it and as preshuffled rows lie.
  constexpr bool row_side_by_side() const { return method == GemmMethod::dot && !b.preshuffled; }
  constexpr int lanes_per_row() const { return row_side_by_side() ? 16 : method == GemmMethod::matrix32 ? 2 : 4; }
  constexpr int rows_per_load() const { return wave_size / lanes_per_row(); }
  // With shared rows waves have columns of their own, and each loads a tile of rows for all; without, a wave has all of a step.
  constexpr int column_waves() const { return shares_rows() ? waves : 1; }
  constexpr int step_waves() const { return shares_rows() ? 1 : waves; } // that share the steps of a segment
  constexpr int wave_tile_n() const { return tile_n / column_waves(); }
  constexpr int loaded_row_tiles() const { return shares_rows() ? 1 : row_tiles(); }
  constexpr GemmConfig of_wave() const { // what it multiplies
    GemmConfig c = *this;
    c.tile_n = wave_tile_n(), c.rows = row_tiles() * 16, c.row_blocks = 1;
    return c;
  }
  constexpr GemmConfig of_row_loads() const { // what it loads of A
    GemmConfig c = of_wave();
    c.rows = 16;
    return c;
  }
  static constexpr int row_tiles_ahead = 2; // that come from LDS while one is multiplied
  static constexpr int shared_places = 3;   // steps in LDS: one is written, one is multiplied, and of the one between the first row tiles are read
  constexpr int shared_row_bytes() const { return shared_places * waves * wave_size * (16 * loads + (a.plain() ? 0 : 4)); }
  constexpr int b_loads() const { return products * wave_tile_n() / rows_per_load() * loads; } // of a lane and step
  // Loads of A of a lane and step, for MFMA; steps that a wave that loads A keeps in flight. A comes from a cache, in at most half the
  // time that B takes.
  constexpr int a_loads() const { return row_tiles() * loads * (a.bits / b.bits); }
  constexpr int a_stages() const { return a_producers > 0 && stages * b_producers > 2 * a_producers ? stages * b_producers / (2 * a_producers) : 1; }
  constexpr int slot_bytes() const { return (b_loads() + a_loads()) * wave_size * 16; }
  constexpr int step_bytes() const { return loads * lanes_per_row() * 16; }             // of a row of B
  constexpr int step_k() const { return step_bytes() * 8 / b.bits; }
  constexpr int load_k() const { return step_k() / loads; } // elements of a row that a load covers
  constexpr bool packed() const { return b.bits == 4; } // two weights a byte, with scales of groups
  constexpr bool block_scaled() const { return b.encoding == Encoding::block_scaled; }
  constexpr int groups() const { return ceil_div(k, b.group); } // of a row
  // Unpacked f16 weights are not in the order of k. Either they are put in order or A's numbers are put into theirs, whichever are
  // fewer. If only MFMA reads A, LLVM may keep it in AGPRs, like the accumulators.
  constexpr bool unpacks_in_order() const { return b.encoding == Encoding::int4 && !batch_invariant && is_matrix() && row_tiles() > 1 && row_tiles() >= products * tile_n / rows_per_load(); }
  // Whether the scales of four consecutive groups are one load: where a load of weights is one or two whole groups.
  constexpr bool wide_scales() const { return b.encoding == Encoding::int4 && b.zero_bytes == 0 && !k_tail() && load_k() % b.group == 0 && load_k() / b.group <= 2 && groups() >= 4; }
  constexpr int scale_quads() const { return ceil_div(stages * step_k() / b.group, 4); } // such loads of a row in a turn of the ring
  // Whether a load has whole lines of eight rows, so that no cache has to keep a half until it is asked for. Lanes exchange what it brings
  // in registers, which sums of groups of several tiles of rows do not leave.
  constexpr bool whole_lines() const {
    const bool has_room = shares_rows() || (method == GemmMethod::matrix && (b.plain() || (block_scaled() && row_tiles() == 1 && !batch_invariant)));
    return has_room && loads == 2 && a.bits == b.bits && !b.preshuffled && !k_tail();
  }
  constexpr int row_bytes() const { return static_cast<int>(static_cast<long long>(k) * b.bits / 8); }
  // Bytes that a byte of k is from the next: preshuffled, 16 bytes of a row are followed by those of 15 further rows.
  constexpr int k_stride() const { return b.preshuffled ? 16 : 1; }
  constexpr int a_row_bytes() const { return static_cast<int>(static_cast<long long>(k) * a.bits / 8); }
  constexpr int steps_per_tile() const { return ceil_div(row_bytes(), step_bytes()); }
  // Steps of a segment at most; bytes of a row of A in LDS, which lies 16 bytes further in the banks than the row before.
  constexpr int max_steps() const {
    const long long of_workgroup = (steps() + workgroups - 1) / workgroups;
    return of_workgroup < steps_per_tile() ? static_cast<int>(of_workgroup) : steps_per_tile();
  }
  // Pieces of 16 elements a lane that a row of A in LDS has; and whether a wave can hold all that it takes in registers while they come.
  constexpr int staged_pieces() const { return ceil_div(max_steps() * step_bytes() / 16, wave_size); }
  constexpr bool prefetches_rows() const { return staged && ceil_div(staged_pieces() * rows, waves) <= (a.norm_parts > 0 ? 8 : 16); }
  // Loads of a lane in flight while a wave looks for the largest element of a row: 16 at most, as 8 take up to a tenth longer by prediction,
  // and about as many in every trip. And trips of a row.
  constexpr int largest_trips() const { return ceil_div(ceil_div(a_row_bytes(), wave_size * 16), 16); }
  constexpr int largest_in_flight() const { return ceil_div(ceil_div(a_row_bytes(), wave_size * 16), largest_trips()); }
  // Loads of a lane that ask for rows of A before the steps do, each workgroup of an XCD for a share: where A is a good part of what a CU loads.
  constexpr int rows_ahead_loads(int xcds) const {
    if (by_expert() || a.quantises || rows < 8 || workgroups < 2 * xcds) return 0;
    const int loads_of_lane = ceil_div(ceil_div(rows * ceil_div(a_row_bytes(), line_bytes), workgroups / xcds), threads());
    return loads_of_lane > 8 ? 0 : loads_of_lane; // of 30 words LLVM 21 made an array in scratch, and few workgroups gain little
  }
  constexpr int staged_row() const { return max_steps() * step_bytes() + 16; }
  constexpr bool k_tail() const { return row_bytes() % step_bytes() != 0; }
  constexpr int tiles() const { return ceil_div(n, tile_n); }
  constexpr bool n_tail() const { return n % tile_n != 0; }
  constexpr long long steps() const { return static_cast<long long>(tiles()) * steps_per_tile() * blocks(); } // at most, with experts
  // Steps that the waves share as a unit: what is in the ring, which fits the registers beside `rows`.
  constexpr int wave_unit() const { return batch_invariant ? 1 : stages; }
  // Whether runs begin and end where tiles do; else batch-invariant tiles are split into equal parts, one a workgroup.
  constexpr bool whole_tiles() const { return steps_per_tile() == 1 || (batch_invariant && (by_expert() || workgroups <= tiles())); }
  constexpr int run_unit() const { return whole_tiles() ? steps_per_tile() : 1; } // steps
  // Whether some workgroup has parts of several tiles.
  constexpr bool crosses() const {
    if (by_expert() || whole_tiles()) return by_expert() || workgroups < tiles();
    return steps() % workgroups != 0 || steps_per_tile() % (steps() / workgroups) != 0;
  }
  // Whether some workgroup gets a part of a tile, so that partial sums have to meet.
  constexpr bool splits() const { return !whole_tiles() && (by_expert() || steps() % workgroups != 0 || steps() / workgroups % steps_per_tile() != 0); }
  // With experts: into how many parts a tile is cut at most. More take longer to be collected than they save (docs/moe.md#few-tokens).
  constexpr int max_tile_parts() const {
    const int pay = steps_per_tile() < 128 ? 4 : 8;
    return pay < steps_per_tile() ? pay : steps_per_tile();
  }
  constexpr bool cuts_tiles() const { return by_expert() && splits() && max_tile_parts() > 1; }
  // Into how many whole parts each of `items` tiles is cut: as many as there are workgroups for, since runs that cross tiles finish two. 0: there
  // are more tiles than workgroups, or none.
  constexpr unsigned parts_of(unsigned items) const {
    const unsigned all = static_cast<unsigned>(workgroups), most = static_cast<unsigned>(max_tile_parts());
    if (items == 0 || items > all) return 0;
    return all / items < most ? all / items : most;
  }
  // Chunks of `vec` elements that a lane has of a finished tile.
  constexpr int chunks_per_row() const { return tile_n / vec; }
  constexpr int chunks() const { return shares_rows() ? row_tiles() * wave_tile_n() / 16 : ceil_div(rows * chunks_per_row(), threads()); }
  constexpr bool ragged() const { return n % vec != 0; }
  // Whether parts of a tile are published, see gemm/stream_k.h.
  constexpr bool publishes() const { return splits() && !atomics; }
  // Numbers of one partial tile in the workspace; and what lies there: counters, parts, and sums that are gone on with. Counters are also of
  // finished tiles: of all with rows at the end, of those of the same columns with sums over experts.
  constexpr int lane_numbers() const { return chunks() * products * vec; } // of a tile, that a lane has
  constexpr int partial_floats() const { return lane_numbers() * threads(); }
  constexpr StreamKSpace shared() const {
    return {.workgroups = splits() ? workgroups : 0, .numbers = atomics ? 0 : partial_floats(), .counters = rows_at_end ? 1 : experts.sums ? tiles() : 0};
  }
  constexpr long long partial_bytes() const { return shared().bytes() + (splits() && atomics ? 4ll * tiles() * partial_floats() : 0); }
  // Parts that are collected at a time: as many as 16 numbers of a lane allow, from one to four.
  constexpr int parts_at_a_time() const {
    return lane_numbers() >= 16 ? 1 : lane_numbers() >= 8 ? 2 : 4;
  }
  constexpr long long sums_bytes() const { return 4ll * n * (rows_at_end ? rows : experts.sums ? experts.pairs() : 0); } // of one product
  constexpr long long workspace_bytes() const {
    return splits() || rows_at_end || experts.sums ? partial_bytes() + products * sums_bytes() : 0;
  }
  // LDS in which the waves' sums meet, row after row; the padding spreads rows over the banks. If the lanes of a row are far apart,
  // their sums meet there too: each quarter of a wave has a plane.
  constexpr int planes_per_wave() const { return method == GemmMethod::dot && b.preshuffled ? lanes_per_row() : 1; }
  constexpr int planes() const { return summing_waves() * planes_per_wave(); }
  constexpr int lds_row() const { return products * tile_n + 4; }
  constexpr int lds_of_sums(int of_rows) const { return planes() * of_rows * lds_row() * 4; }
  // Rows whose sums meet there at a time: all, or as many as three quarters of the smallest LDS hold, in whole chunks of every lane.
  constexpr int sum_rows() const {
    constexpr int most = 48 << 10;
    for (int some = 64; lds_of_sums(rows) > most && some >= edge(); some /= 2)
      if (some < rows && some * chunks_per_row() % threads() == 0 && lds_of_sums(some) <= most) return some;
    return rows;
  }
  constexpr int sum_rounds() const { return ceil_div(rows, sum_rows()); }
  constexpr int list_bytes() const { return by_expert() ? blocks() * 4 + ceil_div(experts.pairs() * 2, 4) * 4 + 4 + 16 : 0; } // of blocks and pairs
  constexpr int lds_bytes() const {
    if (shares_rows()) return shared_row_bytes();
    return list_bytes() + lds_of_sums(sum_rows()) + 16 + slots * slot_bytes() + ceil_div(slots * 12, 16) * 16 + (a.quantises ? ceil_div(rows, 4) * 16 : 0) +
           (staged ? rows * staged_row() : 0);
  }

  // From an expert to the next one: elements of scales, and bytes of zero points and of the matrix.
  constexpr long long scales_of_expert() const { return static_cast<long long>(b.word_scales() > 0 ? experts.n : ceil_div(experts.n, 128)) * groups(); }
  constexpr long long zero_bytes_of_expert() const { return b.zero_bytes ? static_cast<long long>(b.zero_bytes) * groups() : scales_of_expert(); }
  constexpr long long bytes_of_expert() const { return static_cast<long long>(experts.n) * row_bytes(); }

  bool operator==(const GemmConfig&) const = default;
};

// nullptr, or what is wrong: with A, with B, with both together.
constexpr const char* why_invalid_a(const OperandConfig& a) {
  if (a.bits != 8 && a.bits != 16 && a.bits != 32 && !(a.bits == 4 && a.mx())) return "a_bits must be 8, 16 or 32; 4 of MX formats";
  if (a.encoding == Encoding::int4 || a.encoding == Encoding::nvfp4 || a.zero_bytes || a.preshuffled) return "integers of 4 bits and preshuffled rows are of B";
  if (a.scales_by_group && a.plain()) return "A has no scales that could lie group after group";
  if (a.quantises && (a.bits != 16 || !a.plain())) return "rows of A are quantised from 16 bits, without scales of groups";
  if (a.norm_parts < 0 || (a.norm_parts && !a.quantises)) return "rows of A are normed before they are quantised, by one number or more a row";
  return nullptr;
}
constexpr const char* why_invalid_b(const OperandConfig& b) {
  if (b.bits != 4 && b.bits != 8 && b.bits != 16 && b.bits != 32) return "b_bits must be 4, 8, 16 or 32";
  if (b.scales_by_group || b.quantises || b.norm_parts) return "rows that are quantised and scales group after group are of A";
  if (b.zero_bytes && (b.encoding != Encoding::int4 || b.zero_bytes % 4)) return "zero points of 4 bits are for 4-bit integers, eight in a word";
  switch (b.encoding) {
  case Encoding::plain: return b.bits == 4 || b.group ? "B without scales has 8, 16 or 32 bits" : nullptr;
  case Encoding::block_scaled: return b.group != 128 || b.bits != 8 ? "scales of blocks are for 8-bit A and B, one for 128 elements of k" : nullptr;
  case Encoding::int4: return b.bits != 4 || b.group < 32 || b.group % 32 ? "4-bit B takes 16-bit A and a group that is a multiple of 32" : nullptr;
  case Encoding::mx: return b.bits > 8 || b.group != 32 ? "mx is for B of 4 bits, or of 8 as A, with a scale for 32 elements of k" : nullptr;
  case Encoding::nvfp4: return b.bits != 4 || b.group != 32 ? "nvfp4 is for B of 4 bits, with two scales for 32 elements of k" : nullptr;
  }
  return "unknown encoding of B";
}
constexpr const char* why_invalid_pair(const OperandConfig& a, const OperandConfig& b) {
  if (a.bits == 32 ? b.bits < 16 : b.bits == 32) return "32-bit A takes B of 16 or 32 bits, other A none of 32";
  if (b.encoding == Encoding::int4 && (a.bits != 16 || !a.plain())) return "4-bit B takes 16-bit A and a group that is a multiple of 32";
  if (b.encoding == Encoding::nvfp4 && (a.bits != 16 || !a.plain())) return "nvfp4 takes A of 16 bits";
  if (b.mx() && (a.bits < b.bits || (b.bits == 8 && a.bits != 8) || (a.bits == 16) != a.plain()))
    return "mx is for B of 4 bits, or of 8 as A, with a scale for 32 elements of k";
  if (a.mx() && (!b.mx() || a.group != b.group)) return "A of an MX format takes B of one";
  if ((a.encoding == Encoding::block_scaled) != (b.encoding == Encoding::block_scaled) || (a.encoding == Encoding::block_scaled && (a.bits != 8 || a.group != b.group)))
    return "scales of blocks are for 8-bit A and B, one for 128 elements of k";
  if (a.quantises && (b.bits != 8 || !b.plain())) return "rows of A are quantised to B's 8 bits, without scales of groups";
  return nullptr;
}

constexpr const char* why_invalid_experts(const GemmConfig& c) {
  const ExpertsConfig& of = c.experts;
  if (of.count < 1 || of.count > 1024) return "experts must be from 1 to 1024";
  if (of.tokens < 1 || of.tokens > 128 || of.top < 1 || of.top > 16) return "tokens must be from 1 to 128, and top from 1 to 16";
  if (c.rows != 16 && c.rows != 32 && c.rows != 64 && c.rows != 128) return "rows must be 16, 32, 64 or 128";
  if (of.sums && c.products != 1) return "a sum over experts is of one product";
  if (c.vec < 1 || c.n % c.vec) return "vec must divide n";
  if (c.method != GemmMethod::matrix || c.a.quantises || c.b.preshuffled || c.rows_at_end || c.atomics)
    return "products by expert take method matrix, and parts of any of their tiles";
  return nullptr;
}

constexpr const char* why_invalid_shared_rows(const GemmConfig& c) {
  if (!c.shares_rows()) return c.row_blocks == 1 ? nullptr : "only method shared_rows has row_blocks";
  if (c.a.bits != c.b.bits) return "method shared_rows takes operands of as many bits each: use method matrix";
  if (c.a.mx() && (!c.whole_lines() || c.b.bits != 4 || c.a.scales_by_group))
    return "method shared_rows takes MX formats of 4 bits, with 2 loads, rows of whole lines and scales row after row: use method matrix";
  if (c.rows_at_end || c.epilogue_group) return "method shared_rows takes no epilogue that reduces columns: use method matrix";
  if (c.waves != 4) return "method shared_rows takes 4 waves";
  if (c.products * c.tile_n != 128) return "method shared_rows takes 128 columns of all products together: a tile_n of 128, or of 64 with two";
  if (c.vec != 4) return "method shared_rows takes a vec of 4, as matrix instructions leave their sums";
  if (c.k_tail()) return "method shared_rows takes rows of whole steps: use fewer loads, or method matrix";
  if (c.stages < 3 || c.stages > c.steps_per_tile()) return "method shared_rows takes three stages at least, and as many steps of a tile";
  if (c.row_blocks < 1 || c.row_blocks > 8 || c.row_tiles() > c.waves || c.row_tiles() * (c.row_blocks - 1) >= ceil_div(c.rows, 16))
    return "row_blocks must leave 16 to 64 rows to each block";
  if (c.workgroups != c.tiles() * c.row_blocks) return "method shared_rows takes a workgroup for each tile and block of rows, as their sums do not meet";
  return nullptr;
}

// nullptr, or what is wrong with it. Serves as the host's error text and the device's static_assert.
constexpr const char* why_invalid(const GemmConfig& c) {
  if (c.by_expert())
    if (const char* const invalid = why_invalid_experts(c)) return invalid;
  if (c.rows < 1 || c.rows > 128) return "rows must be from 1 to 128";
  if (c.n < 1 || c.n > 1 << 24 || c.k < 1 || c.k > 1 << 24) return "n and k must be from 1 to 16777216";
  if (const char* const invalid = why_invalid_a(c.a)) return invalid;
  if (const char* const invalid = why_invalid_b(c.b)) return invalid;
  if (const char* const invalid = why_invalid_pair(c.a, c.b)) return invalid;
  if ((c.a.bits == 32 || (c.a.mx() && !c.shares_rows()) || c.a.quantises) && c.method != GemmMethod::matrix)
    return "A of 32 bits or quantised takes method matrix only, and A of an MX format that or shared_rows";
  if (const char* const invalid = why_invalid_shared_rows(c)) return invalid;
  if (c.a.mx() && c.b.bits == 8 && c.loads == 1) return "A and B of MX formats of 8 bits take loads of 2 or 4: an instruction has 128 bytes of a row";
  if (c.staged && !c.a.quantises) return "rows of A that lie in LDS are quantised ones";
  if (static_cast<long long>(c.k) * c.b.bits % 128 || static_cast<long long>(c.k) * c.a.bits % 128)
    return "rows of A and B must be multiples of 16 bytes";
  if (c.products < 1 || c.products > 2) return "products must be 1 or 2";
  if (c.tile_n < 16 || c.tile_n > 256 || !is_power_of_two(c.tile_n)) return "tile_n must be 16, 32, 64, 128 or 256";
  if (c.has_producers() && c.rows_at_end) return "method producers has no rows at the end: use method matrix";
  if (c.has_producers() && (!c.b.plain() || c.b.preshuffled))
    return "method producers takes B of 8 or 16 bits, without scales of groups and not preshuffled: use method matrix";
  if (c.has_producers() ? c.waves < 3 || c.waves > 16 : !is_power_of_two(c.waves) || c.waves > 16)
    return "waves must be 1, 2, 4, 8 or 16; with producers from 3 to 16";
  if (c.loads != 1 && c.loads != 2 && c.loads != 4) return "loads must be 1, 2 or 4";
  if (c.tile_n < c.rows_per_load()) return "method matrix32 takes a tile_n of 32 at least";
  if (c.block_scaled() && (c.tile_n > c.b.group || (c.method != GemmMethod::dot && c.step_k() > c.b.group)))
    return "with scales of blocks, tile_n and the elements of a step must not exceed a block of 128";
  if (c.stages < 1 || c.stages > 16) return "stages must be from 1 to 16";
  if (c.stages * c.b_loads() > max_loads_in_flight) return "stages * loads must leave room in vmcnt: at most 60 loads in flight";
  if (c.workgroups < 1 || c.workgroups > 1 << 20) return "workgroups must be from 1 to 1048576";
  if (c.workgroups > c.steps()) return "workgroups must not exceed the steps of the work";
  if (c.batch_invariant && (c.method != GemmMethod::matrix || c.atomics)) return "batch-invariant products take method matrix, and parts of tiles in a fixed order";
  if (c.batch_invariant && !c.whole_tiles() && c.crosses())
    return "batch-invariant products have whole tiles or equal parts of them: as many workgroups as tiles, fewer, or as many times more as divides the steps of a tile";
  if (c.steps() >= 1ll << 31) return "the work has too many steps: use a larger tile_n, loads or rows";
  if (const char* const invalid = why_invalid_waves_per_eu(c.waves_per_eu)) return invalid;
  if (!is_power_of_two(c.vec) || c.vec > 8 || c.vec > c.tile_n) return "vec must be 1, 2, 4 or 8";
  if (c.epilogue_group && (c.tile_n % c.epilogue_group || c.n % c.epilogue_group || c.vec > c.epilogue_group || c.vec * wave_size < c.epilogue_group))
    return "tile_n must be a multiple of the columns that the epilogue reduces together, and a wave must have them";
  if (c.epilogue_group && c.rows_at_end) return "the epilogue reduces columns of a tile or whole rows at the end, not both";
  if (c.method == GemmMethod::sparse && c.rows > 8) return "method sparse takes at most 8 rows";
  if (c.method == GemmMethod::dot && c.rows > 4) return "method dot takes at most 4 rows";
  if (!c.has_producers())
    return c.a_producers || c.b_producers || c.slots || c.direct ? "only method producers has a_producers, b_producers, slots and direct" : nullptr;
  if (c.a_producers < 1 || c.b_producers < 1 || c.summing_waves() < 1)
    return "method producers needs waves that load A, waves that load B, and waves that are neither";
  if (c.a_stages() * c.a_loads() > max_loads_in_flight) return "stages * loads of A must leave room in vmcnt: use more a_producers";
  if (c.slots < c.a_producers || c.slots < c.b_producers || c.slots < c.summing_waves() || c.slots > 256)
    return "slots must be as many as any kind of waves at least, and at most 256";
  // A slot is declared full a ring later than its loads are issued: those of the whole ring must not wait for one another.
  if (c.direct && (c.slots < c.stages * c.b_producers || c.slots < c.a_stages() * c.a_producers))
    return "slots must hold what direct loads keep in flight: stages * b_producers";
  return nullptr;
}

// What the waves that multiply do with a step when others load it.
constexpr GemmConfig without_producers(GemmConfig c) {
  if (c.has_producers()) c.method = GemmMethod::matrix;
  return c;
}

} // namespace kiln

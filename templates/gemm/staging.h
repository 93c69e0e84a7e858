// Staging: when a workgroup loads its rows of A, what they are multiplied by, and when they lie quantised in LDS.
#pragma once
#include "gemm/largest_of_rows.h"
#include "gemm/norm_of_rows.h"
#include "gemm/staged_rows.h"

namespace kiln {

template <GemmConfig config, class A> struct RowsToStage {
  const A* a;
  u32 rows, block;
  const void* weights;
  Either<(config.a.norm_parts > 0), RowNorm, NoNorm> norm;
};

// Rows come while the first ring of B is on its way: they are loaded before it, and loads return in order.
template <GemmConfig config, class A, class B> class Staging {
  using Staged = StagedRows<config>;
  static constexpr bool norms = config.a.norm_parts > 0, ahead = config.prefetches_rows();

public:
  KILN_MEMBER explicit Staging(const RowsToStage<config, A>& from) : from_(from) {}

  // Before and after the first loads of B of the first segment.
  KILN_MEMBER void begin(const GemmSegment& segment) {
    if constexpr (!norms) factors_ = LargestOfRows<config>::find(from_.a, from_.rows, from_.block);
    else if constexpr (ahead) norm_ = NormOfRows<config>::load(from_.norm, from_.rows);
    else factors_ = NormOfRows<config>::find(NormOfRows<config>::load(from_.norm, from_.rows), from_.norm, from_.rows);
    if constexpr (ahead) loaded_ = Staged::load_rows(from_.a, from_.rows, from_.weights, segment);
    else put_now(segment);
  }
  KILN_MEMBER void finish(const GemmSegment& segment) {
    if constexpr (ahead) {
      if constexpr (norms) factors_ = NormOfRows<config>::find(norm_, from_.norm, from_.rows);
      put_loaded(segment);
    }
    platform::barrier();
  }
  // The same for a further one, in front of whose steps the rows of the one before are multiplied no more.
  KILN_MEMBER void begin_next(const GemmSegment& before, const GemmSegment& next) {
    if constexpr (ahead)
      if (differ(before, next)) loaded_ = Staged::load_rows(from_.a, from_.rows, from_.weights, next);
  }
  KILN_MEMBER void finish_next(const GemmSegment& before, const GemmSegment& next) {
    if (!differ(before, next)) return;
    if constexpr (ahead) put_loaded(next);
    else put_now(next);
    platform::barrier();
  }

private:
  // Whether rows lie in LDS that are not those of the next segment.
  KILN_DEVICE bool differ(const GemmSegment& before, const GemmSegment& next) { return before.first != next.first || before.count < next.count; }
  KILN_MEMBER f32 factor_of(u32 row) const {
    if constexpr (norms) return factors_[row];
    else return Fp8<B>::max / factors_[row];
  }
  KILN_MEMBER void put_loaded(const GemmSegment& segment) const {
    Staged::template put_loaded<B, A>(loaded_, from_.rows, segment, [&](u32 row) KILN_LAMBDA { return factor_of(row); });
  }
  KILN_MEMBER void put_now(const GemmSegment& segment) const {
    Staged::template put<B>(from_.a, from_.rows, from_.weights, segment, [&](u32 row) KILN_LAMBDA { return factor_of(row); });
  }

  RowsToStage<config, A> from_;
  const f32* factors_ = nullptr; // what rows are multiplied by, or their largest magnitudes
  [[no_unique_address]] Either<norms, typename NormOfRows<config>::Loaded, NoNorm> norm_;
  [[no_unique_address]] Either<ahead, typename Staged::Loaded, NoNorm> loaded_;
};

struct NoStaging {
  template <class From> KILN_MEMBER explicit NoStaging(const From&) {}
  KILN_MEMBER void begin(const GemmSegment&) {}
  KILN_MEMBER void finish(const GemmSegment&) {}
  KILN_MEMBER void begin_next(const GemmSegment&, const GemmSegment&) {}
  KILN_MEMBER void finish_next(const GemmSegment&, const GemmSegment&) {}
};

} // namespace kiln

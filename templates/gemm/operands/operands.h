// GemmScales: what a lane loads beside the words of a step, and what it makes of them, by the encoding of B.
#pragma once
#include "gemm/operands/block_scaled.h"
#include "gemm/operands/int4.h"
#include "gemm/operands/mx.h"
#include "gemm/operands/nvfp4.h"

namespace kiln {

template <GemmConfig config, Encoding encoding> struct ScalesOf { using type = NoScales; };
template <GemmConfig config> struct ScalesOf<config, Encoding::block_scaled> { using type = BlockScales<config>; };
template <GemmConfig config> struct ScalesOf<config, Encoding::int4> { using type = Int4Words<config>; };
template <GemmConfig config> struct ScalesOf<config, Encoding::mx> { using type = Either<config.a.mx(), MxScales<config>, MxWords<config>>; };
template <GemmConfig config> struct ScalesOf<config, Encoding::nvfp4> { using type = Nvfp4Words<config>; };
template <GemmConfig config> using GemmScales = typename ScalesOf<config, config.b.encoding>::type;

} // namespace kiln

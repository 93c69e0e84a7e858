// What kernels of several problems are made of when some are products.
#pragma once
#include "gemm/rows_at_end.h"
#include "fused_launch.h"

// What kernels of several problems are made of when some are products.
#pragma once
#include "skinny_gemm_rows.h"
#include "together.h"

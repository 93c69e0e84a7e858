// A skinny product whose epilogue reduces rows: the last workgroup goes on with the rows of the result.
#pragma once
#include "expert_sort.h"
#include "rowwise.h"
#include "gemm/gemm.h"

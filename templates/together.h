// What kernels of several problems are made of: rows and flat runs, some workgroups each.
#pragma once
#include "elementwise.h"
#include "rowwise.h"

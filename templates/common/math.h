// All pointwise operations.
#pragma once
#include "common/functions.h"
#include "common/microscaling.h"

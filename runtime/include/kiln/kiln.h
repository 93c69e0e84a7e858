// Kiln, all of it: what a program that embeds Kiln includes. <gen/...>, <isa_checks/...> and <runtime/...> are its parts.
#pragma once
#include "gen/catalog/catalog.h"
#include "gen/evaluate.h"
#include "gen/expr.h"
#include "gen/math.h"
#include "gen/spec.h"
#include "gen/target.h"
#include "isa_checks/facts.h"
#include "runtime/aot/aot.h"
#include "runtime/aot/aot_command.h"
#include "runtime/build_kernel.h"
#include "runtime/jit/jit.h"

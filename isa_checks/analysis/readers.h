// Readers: the instructions that read what an instruction wrote.
#pragma once
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include <cstddef>
#include <vector>

namespace kiln::isa {

struct Reader {
  std::size_t instruction = 0;
  std::size_t distance = 0; // instructions between writer and reader on a shortest path that was followed
  bool operator==(const Reader&) const = default;
};

struct Readers {
  std::vector<Reader> list; // by distance
  bool complete = true;     // false: the search was cut off, or control leaves for where it cannot follow
};

// Follows control from `writer` until all of `range` (at most 64 registers) is overwritten. Looks at no more than `most`
// instructions.
Readers readers_of(const Program& program, std::size_t writer, RegisterRange range, std::size_t most = 4096);

} // namespace kiln::isa

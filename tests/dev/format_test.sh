#!/usr/bin/env bash
# Proves that the sources are laid out as `./dev format` leaves them. Arguments: clang-format, the tree.
set -euo pipefail
cd "$2"
find machine gen isa_checks runtime examples tests -name '*.h' -o -name '*.cpp' | xargs "$1" --style=file --dry-run -Werror || {
  echo 'format: lay the files above out with ./dev format'
  exit 1
}

#!/usr/bin/env bash
# docs.sh: the API reference of the public headers, those that <kiln/kiln.h> includes, by Doxygen. A warning is an error.
#   cmake/docs.sh FOLDER      writes FOLDER/html/index.html
set -euo pipefail
out=$(realpath -m "${1:?usage: cmake/docs.sh FOLDER}")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
command -v doxygen >/dev/null || { echo "docs: doxygen is not there: install the package doxygen, or use ./dev docs" >&2 && exit 2; }

# Follows #include "..." from kiln.h; prints every header once.
declare -A seen
public_headers() {
  local header
  for header in $(sed -nE 's/^#include "([^"]+\.h)".*/\1/p' "$1"); do
    [[ -e $header ]] || header=templates/$header # device headers name each other without their folder
    [[ ! ${seen[$header]:-} ]] || continue
    seen[$header]=1
    echo "$header"
    public_headers "$header"
  done
}
mapfile -t headers < <(public_headers runtime/include/kiln/kiln.h | sort)

mkdir -p "$out"
{
  cat docs/Doxyfile
  echo "OUTPUT_DIRECTORY = $out"
  echo "PROJECT_NUMBER = $(sed -nE 's/^project\(kiln VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)"
  echo "INPUT = docs/api.md runtime/include/kiln/kiln.h ${headers[*]}"
} | doxygen -
echo "$out/html/index.html: ${#headers[@]} headers"

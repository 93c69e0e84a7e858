#!/usr/bin/env bash
# Proves that libkiln_c.so gives away the names that it gave away before, and that these are the functions of kiln_c.h.
#   symbols_test.sh NM LIBRARY TREE
set -euo pipefail
nm=$1 library=$2 tree=$3
failed=0

same() { # WHAT FILE FILE
  local differences
  differences=$(diff "$2" "$3") || { printf '%s:\n%s\n' "$1" "$differences" && failed=1; }
}
declared() { sed -nE 's/^[a-z_].*\b(kiln_[a-z0-9_]+)\(.*/\1/p' "$tree/runtime/include/kiln/kiln_c.h" | sort -u; }

# "name VERSION"; the version's own name is a symbol too.
exported=$("$nm" --dynamic --defined-only --with-symbol-versions "$library" | awk '$2 != "A" { sub(/@@?/, " ", $3); print $3 }' | sort)
same 'exported by the library (<), and listed in tests/c/symbols.txt (>)' <(echo "$exported") "$tree/tests/c/symbols.txt"
same 'declared in kiln_c.h (<), and exported (>)' <(declared) <(cut -d' ' -f1 <<<"$exported")
[[ $(wc -l <<<"$exported") -ge 40 ]] || { echo "the library exports almost nothing: $exported" && failed=1; }
exit $failed

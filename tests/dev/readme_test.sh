#!/usr/bin/env bash
# Runs the commands of README.md whose output it shows ("$ COMMAND" lines) and compares their words: numbers follow the cost model and the
# compiler, and may be others. "..." stands for lines that are left out. usage: readme_test.sh TREE FOLDER_OF_PROGRAMS
set -euo pipefail
tree=$1 programs=$2
export PATH=$programs:$PATH KILN_CACHE_DIR
KILN_CACHE_DIR=$(mktemp -d)
trap 'rm -rf "$KILN_CACHE_DIR"' EXIT
failures=0 checked=0

plain() { sed -E "s/[0-9]+([.][0-9]+)?/N/g; s/[[:space:]]+\$//"; }

# compare WHAT: whether each part of $KILN_CACHE_DIR/shown between "..." lines comes in the output, in order.
compare() {
  awk 'NR == FNR { shown[n++] = $0; next } { got[m++] = $0 }
    END { at = 0; free = 0
      for (i = 0; i < n; i++) {
        if (shown[i] ~ /^ *\.\.\.$/) { free = 1; continue }
        while (free && at < m && got[at] != shown[i]) at++
        if (at >= m || got[at] != shown[i]) { printf "shown: %s\n  got: %s\n", shown[i], (at < m ? got[at] : "nothing"); exit 1 }
        at++; free = 0
      }
      if (!free && at < m) { printf "not shown: %s\n", got[at]; exit 1 } }' "$KILN_CACHE_DIR/shown" "$KILN_CACHE_DIR/got"
}

check() { # COMMAND, with what is shown of its output in $KILN_CACHE_DIR/raw
  [[ $1 == *'./dev exec '* ]] || return 0 # ./dev build and its like
  checked=$((checked + 1))
  plain <"$KILN_CACHE_DIR/raw" >"$KILN_CACHE_DIR/shown"
  local command=${1/.\/dev exec /}
  (cd "$KILN_CACHE_DIR" && bash -c "${command/build\/bin\//}" 2>/dev/null | plain >got) || :
  compare || { echo "README.md: the output of '$1' is another" && failures=$((failures + 1)); }
}

command=''
: >"$KILN_CACHE_DIR/raw"
inside=''
while IFS= read -r line; do
  if [[ $line == '```'* || $line == '$ '* ]]; then
    [[ ! $command ]] || check "$command"
    command='' && : >"$KILN_CACHE_DIR/raw"
    [[ $line != '```'* ]] || inside=$([[ $inside ]] || echo yes)
    [[ $line != '$ '* ]] || command=${line#\$ }
  elif [[ $inside && $command ]]; then
    printf '%s\n' "$line" >>"$KILN_CACHE_DIR/raw"
  fi
done <"$tree/README.md"
[[ $checked -ge 2 ]] || { echo "README.md shows the output of $checked commands, and 2 or more were expected" && exit 1; }
[[ $failures == 0 ]] || exit 1
echo "$checked outputs are as README.md shows them"

#!/usr/bin/env bash
# Runs ggml's own test program on Kiln's backend: a seeded slice of the cases that Kiln supports, or all of them.
#   ops.sh LIBRARY [OPERATION...]
# KILN_GGML_CASES=N or all (default 225 on gfx942, 75 on gfx950), KILN_GGML_SEED=N. The slice is drawn by size and not by name: cases with a
# dimension of 1000 or more take the CPU model minutes and are run with `all`. A tenth of the slice at most is of one operation.
# With `all`: KILN_GGML_LARGEST=N leaves out cases with a dimension above N, and says how many. KILN_GGML_RESULTS=FOLDER keeps the logs of 25
# cases at a time there; a chunk that has one is not run again, so that a run can go on later. The first chunk of each operation comes
# first. KILN_GGML_CASES=table prints what such a folder has.
set -euo pipefail
library=$1
shift
program=$(find /usr/libexec -path '*/ggml/test-backend-ops' 2>/dev/null | head -n 1)
[[ $program ]] || { echo 'skipped: there is no test-backend-ops (package libggml0); ./dev test adds it' && exit 77; }
export GGML_BACKEND_PATH=$library
default=225
[[ ${KILN_DEVICE:-} != *gfx950 ]] || default=75
cases=${KILN_GGML_CASES:-$default}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$folder/log

# All cases as 1 or 0, a space, OPERATION(parameters): rows "backend","operation","parameters","support","1",... of the program.
"$program" support -b Kiln0 --output csv 2>/dev/null |
  sed -nE 's/^"Kiln0","([^"]*)","([^"]*)","support","([01])".*/\3 \1(\2)/p' >"$folder/all"
grep -q '^1' "$folder/all" || { echo 'the backend supports nothing, or did not load:' && "$program" support -b Kiln0 2>&1 | head -n 5; exit 1; }
sed -n 's/^1 //p' "$folder/all" >"$folder/supported"

# Lines with a number of four digits or more that is the size of something, of standard input; -v: the others.
large() { grep -E "$@" '[^0-9.][0-9]{4,}[],)]'; }

# A line for each operation: cases, supported ones, passed, failed. A case that has the same name as another is one line of the logs each.
table() {
  cat "$1"/chunk.*.log 2>/dev/null | sed -nE 's/^.* ([A-Z0-9_]+)\(.*\): .*(OK|FAIL).*/\1 \2/p' |
    awk -v all="$folder/all" '
      BEGIN { while ((getline line < all) > 0) { s = substr(line, 1, 1); op = substr(line, 3); sub(/\(.*/, "", op); n[op]++; if (s == 1) yes[op]++ } }
      $2 ~ /OK/ { ok[$1]++ } $2 ~ /FAIL/ { bad[$1]++ }
      END {
        printf "%-20s %8s %10s %8s %8s\n", "operation", "cases", "supported", "passed", "failed"
        for (op in n) if (yes[op] || ok[op] || bad[op]) printf "%-20s %8d %10d %8d %8d\n", op, n[op], yes[op], ok[op], bad[op] | "sort"
        close("sort")
        for (op in n) { a += n[op]; y += yes[op]; o += ok[op]; b += bad[op] }
        printf "%-20s %8d %10d %8d %8d\n", "all", a, y, o, b
      }'
}

if [[ $cases == table ]]; then
  table "$KILN_GGML_RESULTS"
  exit
fi
if [[ $cases == all ]]; then
  results=${KILN_GGML_RESULTS:-$folder}
  mkdir -p "$results"
  cp "$folder/supported" "$folder/list"
  [[ $# == 0 ]] || grep -E "^($(IFS='|' && echo "$*"))\\(" "$folder/supported" >"$folder/list"
  if [[ ${KILN_GGML_LARGEST:-} ]]; then
    # Numbers by themselves: not those of types, names and fractions.
    awk -v most="$KILN_GGML_LARGEST" '{
      s = $0; gsub(/[a-zA-Z_][a-zA-Z_0-9]*|[0-9]+[.][0-9]+/, " ", s); k = split(s, part, /[^0-9]+/); top = 0
      for (i = 1; i <= k; ++i) if (part[i] + 0 > top) top = part[i] + 0
      if (top <= most) print }' "$folder/list" >"$folder/small"
    echo "$(($(wc -l <"$folder/list") - $(wc -l <"$folder/small"))) cases with a number above $KILN_GGML_LARGEST are left out"
    mv "$folder/small" "$folder/list"
  fi
  awk -v prefix="$results/chunk." '{ op = $0; sub(/\(.*/, "", op); at = n[op]++; file = prefix op "." int(at / 25); print > file; if (at % 25 == 24) close(file) }' "$folder/list"
  for chunk in $(find "$results" -name 'chunk.*' ! -name '*.log' | sed -E 's/(.*[.])([0-9]+)$/\2 &/' | sort -n | cut -d' ' -f2); do
    [[ ! -e $chunk.log ]] || continue
    status=0
    "$program" test -b Kiln0 -o "$(paste -sd, "$chunk")" >"$log" 2>&1 || status=$?
    ((status < 128)) || echo "crashed with status $status: FAIL: $chunk" >>"$log"
    mv "$log" "$chunk.log"
  done
  table "$results"
  [[ ! ${KILN_CACHE_DIR:-} ]] || echo "$(find "$KILN_CACHE_DIR" -name kernel.co | wc -l) kernels in $KILN_CACHE_DIR"
  ! grep -hE 'FAIL|crashed' "$results"/chunk.*.log
  exit
fi
shuffled() { shuf --random-source=<(yes "${KILN_GGML_SEED:-1}"); }
large -v <"$folder/supported" | shuffled | awk -v most="$((cases / 10 + 1))" '{ op = $0; sub(/\(.*/, "", op); if (++n[op] <= most) print }' |
  shuffled | sed -n "1,${cases}p" >"$folder/chosen"
chosen=$(paste -sd, "$folder/chosen")
"$program" test -b Kiln0 -o "$chosen" >"$log" 2>&1 || { grep -v OK "$log" | tail -n 30; exit 1; }
passed=$(grep -oE '[0-9]+/[0-9]+ tests passed' "$log" | head -n 1)
echo "$passed of $(wc -l <"$folder/supported") that are supported"
[[ ${passed%%/*} -ge $((cases * 9 / 10)) && ${passed%%/*} == "$(cut -d/ -f2 <<<"${passed%% *}")" ]] # some names are of several cases, a few of none

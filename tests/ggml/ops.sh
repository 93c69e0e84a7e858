#!/usr/bin/env bash
# Runs ggml's own test program on Kiln's backend: a seeded slice of the cases that Kiln supports, or all of them.
#   ops.sh LIBRARY [OPERATION...]
# KILN_GGML_RESULTS=FOLDER, with `all`: runs 50 cases at a time and keeps their logs there; a chunk that has one is not run again.
# KILN_GGML_CASES=N or all (default 300 on gfx942, 100 on gfx950), KILN_GGML_SEED=N. The slice is drawn by size and not by name: cases with a
# dimension of 1000 or more take the CPU model minutes and are run with `all`.
set -euo pipefail
library=$1
shift
program=$(find /usr/libexec -path '*/ggml/test-backend-ops' 2>/dev/null | head -n 1)
[[ $program ]] || { echo 'skipped: there is no test-backend-ops (package libggml0); ./dev test adds it' && exit 77; }
export GGML_BACKEND_PATH=$library
default=300
[[ ${KILN_DEVICE:-} != *gfx950 ]] || default=100
cases=${KILN_GGML_CASES:-$default}

# Rows "backend","operation","parameters","support","1",...: the supported ones as OPERATION(parameters).
supported() {
  "$program" support -b Kiln0 --output csv 2>/dev/null |
    sed -nE 's/^"Kiln0","([^"]*)","([^"]*)","support","1".*/\1(\2)/p'
}
list=$(mktemp)
log=$(mktemp)
trap 'rm -f "$list" "$log"' EXIT
supported >"$list"
[[ -s $list ]] || { echo 'the backend supports nothing, or did not load:' && "$program" support -b Kiln0 2>&1 | head -n 5; exit 1; }

if [[ $cases == all && ${KILN_GGML_RESULTS:-} ]]; then
  mkdir -p "$KILN_GGML_RESULTS"
  [[ $# == 0 ]] || { pattern=$(IFS='|' && echo "$*") && grep -E "^($pattern)\\(" "$list" >"$log" && cp "$log" "$list"; }
  split -l 50 -d -a 4 "$list" "$KILN_GGML_RESULTS/cases."
  for chunk in "$KILN_GGML_RESULTS"/cases.????; do
    [[ -e $chunk.log ]] || { "$program" test -b Kiln0 -o "$(paste -sd, "$chunk")" >"$log" 2>&1 || :; cp "$log" "$chunk.log"; }
  done
  echo "$(cat "$KILN_GGML_RESULTS"/*.log | grep -cE '\): .*OK') passed, $(cat "$KILN_GGML_RESULTS"/*.log | grep -cE '\): .*FAIL') failed"
  ! grep -hE '\): .*FAIL' "$KILN_GGML_RESULTS"/*.log
  exit
fi
if [[ $cases == all ]]; then
  [[ $# != 0 ]] || mapfile -t operations < <(sed 's/(.*//' "$list" | sort -u)
  for operation in "${operations[@]:-$@}"; do
    status=0
    "$program" test -b Kiln0 -o "$operation" >"$log" 2>&1 || status=$?
    passed=$(grep -oE '[0-9]+/[0-9]+ tests passed' "$log" | head -n 1)
    echo "$operation: $passed"
    [[ $status == 0 && ${passed%%/*} == "$(cut -d/ -f2 <<<"${passed%% *}")" ]] || { grep -vE 'OK' "$log" | tail -n 20; exit 1; }
  done
  exit
fi
chosen=$(grep -vE '[^0-9.][0-9]{4,}[],]' "$list" | shuf --random-source=<(yes "${KILN_GGML_SEED:-1}") -n "$cases" | paste -sd,)
"$program" test -b Kiln0 -o "$chosen" >"$log" 2>&1 || { grep -v OK "$log" | tail -n 30; exit 1; }
passed=$(grep -oE '[0-9]+/[0-9]+ tests passed' "$log" | head -n 1)
echo "$passed of $(wc -l <"$list") that are supported"
[[ ${passed%%/*} -ge $((cases * 9 / 10)) && ${passed%%/*} == "$(cut -d/ -f2 <<<"${passed%% *}")" ]] # some names are of several cases, a few of none

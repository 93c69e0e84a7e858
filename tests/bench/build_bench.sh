#!/usr/bin/env bash
# Times what a newcomer waits for: a fresh clone of HEAD with an empty cache folder, then `./dev demo`, `./dev build`, `./dev test`.
# Prints seconds of each step and of all before it, beside the bounds. Needs an otherwise idle machine to mean anything.
#   ./dev bench build [-- demo]     only as far as demo
set -euo pipefail
tree=$(git -C "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" rev-parse --show-toplevel)
last=${1:-test}
[[ $last =~ ^(demo|build|test)$ ]] || { echo "bench build: '$last' is no step; use demo, build or test" >&2 && exit 2; }
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
git clone --quiet "$tree" "$work/kiln"
export XDG_CACHE_HOME=$work/cache
mkdir "$XDG_CACHE_HOME"

declare -A bound=([demo]=240 [build]=480 [test]=720) # seconds in all since the clone, on two idle cores
missed=0
printf '%s cores, load %s before\n%-6s %8s %8s %8s\n' "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)" step seconds 'in all' bound
start=$SECONDS
for step in demo build test; do
  before=$SECONDS
  "$work/kiln/dev" "$step" >"$work/$step.log" 2>&1 || { tail -n 40 "$work/$step.log" >&2 && exit 1; }
  all=$((SECONDS - start))
  printf '%-6s %8d %8d %8d %s\n' "$step" $((SECONDS - before)) "$all" "${bound[$step]}" "$( ((all <= bound[$step])) && echo met || echo MISSED)"
  ((all <= bound[$step])) || missed=1
  [[ $step != "$last" ]] || break
done
exit "$missed"

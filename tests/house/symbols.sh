#!/usr/bin/env bash
# Proves that the rooms of gen/ link downwards: what a room leaves undefined, no later room defines. Includes can hide such a call.
# symbols.sh NM OBJECTS: NM lists symbols, OBJECTS is the folder of gen's object files.
set -euo pipefail
nm=$1 objects=$2
rooms=(spec plan emit families reference catalog) # in the order of tests/house/includes.cpp
known='kiln::is_word_of_a_family' # spec asks families for reserved words as long as emitted text names devices' functions unqualified
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

for room in "${rooms[@]}"; do
  mapfile -t files < <(find "$objects" -name '*.o' \( -path "*/$room/*" -o -path "*/Unity/unity_gen_${room}_*" \))
  [[ ${#files[@]} -gt 0 ]] || { echo "no object file of gen/$room below $objects" >&2; exit 1; }
  "$nm" -C --undefined-only "${files[@]}" | sed -n 's/^ *U //p' | sort -u >"$work/$room.uses"
  "$nm" -C --defined-only "${files[@]}" | sed -n 's/^[0-9a-f]* [TDBR] //p' | sort -u >"$work/$room.has"
done

failed=0
for ((i = 0; i < ${#rooms[@]}; ++i)); do
  for ((j = i + 1; j < ${#rooms[@]}; ++j)); do
    up=$(comm -12 "$work/${rooms[i]}.uses" "$work/${rooms[j]}.has" | grep -v "^$known" || true)
    [[ -z $up ]] || { printf 'gen/%s links up to gen/%s:\n%s\n' "${rooms[i]}" "${rooms[j]}" "$up"; failed=1; }
  done
done
exit "$failed"

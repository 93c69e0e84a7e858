#!/usr/bin/env bash
# Proves what libkiln.so shows to the world: its soname, one symbol version, Kiln's names alone, and which libraries it needs.
#   library_test.sh LIBRARY ABI BUNDLE
set -euo pipefail
library=$1 abi=$2 bundle=$3
failed=0
fail() { echo "$1" && failed=1; }

dynamic=$(readelf --dynamic --wide "$library")
soname=$(sed -nE 's/.*\(SONAME\).*\[(.*)\]/\1/p' <<<"$dynamic")
[[ $soname == "libkiln.so.$abi" ]] || fail "the soname is $soname, and libkiln.so.$abi was to be"

# g++ 13 makes some of them unique, which binutils may print in two words.
exported=$(readelf --dyn-syms --wide "$library" | sed 's/<OS specific>: 10/UNIQUE/' | awk '$7 ~ /^[0-9]+$/ && $5 != "LOCAL" { print $8 }' | sort -u)
[[ $(wc -l <<<"$exported") -ge 1000 ]] || fail "almost nothing is exported: $exported"
wrong=$(grep -v "@@KILN_$abi\$" <<<"$exported" | grep -vx "KILN_$abi\(@.*\)\?" || :)
[[ ! $wrong ]] || fail "exported without the version KILN_$abi: $wrong"
foreign=$(grep -vE '^_Z.*4kiln|^KILN_' <<<"$exported" | head -n 5 || :)
[[ ! $foreign ]] || fail "exported, and not Kiln's: $foreign"

if [[ $bundle == ON ]]; then
  needed=$(sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' <<<"$dynamic" | grep -vE '^(libc|libm|libdl|libstdc\+\+|libgcc_s|libfmt|ld-linux.*)\.so' || :)
  [[ ! $needed ]] || fail "it needs $needed, which is to be inside of it"
fi
exit $failed

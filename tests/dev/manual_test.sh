#!/usr/bin/env bash
# The manual pages are true: every option that kiln.1 and isa_lint.1 name exists, and every option that --help knows is named.
#   manual_test.sh KILN ISA_LINT DOCS
set -euo pipefail
kiln=$1 isa_lint=$2 docs=$3

# Long options in --help of a program and of its commands, down the tree. CLI11 lists commands after "SUBCOMMANDS:", isa_lint as
# lines "isa_lint COMMAND ...".
options_of() {
  local help command
  help=$("$@" --help)
  grep -oE -- '--[a-z][a-z0-9-]*' <<<"$help"
  for command in $(sed -nE '/^SUBCOMMANDS:/,$ s/^ {2}([a-z][a-z-]*)( .*)?$/\1/p; s/^ {2}isa_lint ([a-z]+) .*/\1/p' <<<"$help"); do options_of "$@" "$command"; done
}
# Long options that a page names; troff writes a hyphen as \-.
options_in() { sed 's/\\-/-/g' "$1" | grep -oE -- '--[a-z][a-z0-9-]*'; }

failed=0
check() {
  local page=$1 wrong
  shift
  wrong=$(diff <(options_of "$@" | sort -u) <(options_in "$page" | sort -u) | sed -nE "s/^< /not in ${page##*\/}: /p; s/^> /no such option, but in ${page##*\/}: /p" || :)
  [[ ! $wrong ]] || { echo "$wrong" && failed=1; }
}
check "$docs/kiln.1" "$kiln"
check "$docs/isa_lint.1" "$isa_lint"
exit $failed

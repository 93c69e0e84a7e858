#!/usr/bin/env bash
# The manual is true: every option that kiln.1 and isa_lint.1 name exists, and every option that --help knows is named; so are the
# variables of environment.md.
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
# $1: a page; $2 and $3: files of what there is, and of what the page names.
check() {
  local wrong
  wrong=$(diff <(sort -u "$2") <(sort -u "$3") | sed -nE "s/^< /not in $1: /p; s/^> /there is none, but in $1: /p" || :)
  [[ ! $wrong ]] || { echo "$wrong" && failed=1; }
}
check kiln.1 <(options_of "$kiln") <(options_in "$docs/kiln.1")
check isa_lint.1 <(options_of "$isa_lint") <(options_in "$docs/isa_lint.1")
check environment.md <({ "$kiln" env --json || :; } | grep -oE '"KILN_[A-Z_]+"' | tr -d '"') <(grep -oE '`KILN_[A-Z_]+`' "$docs/environment.md" | tr -d '`')
exit $failed

#!/usr/bin/env bash
# The pages are true about the tree: every file that a page links to, or names with its folder, exists, and pictures are what their
# script draws.
#   pages_test.sh TREE
set -euo pipefail
cd "$1"
missing=$(
  for page in *.md docs/*.md docs/rules/*.md examples/*.md; do
    # [text](file) and [text](file#part), relative to the page
    grep -oE '\]\([A-Za-z0-9_./-]+[)#]' "$page" | sed 's/^](//; s/.$//' | while read -r link; do
      [[ -e $(dirname "$page")/$link ]] || echo "$page: there is no $link"
    done || :
    # `folder/file`, from the top of the tree; * is a pattern, and an ending may be left out
    grep -oE '`(machine|gen|templates|isa_checks|runtime|examples|tests|docs|cmake)/[A-Za-z0-9_/.*-]+' "$page" | tr -d '`' | while read -r name; do
      [[ $name == *NAME* ]] || compgen -G "$name" >/dev/null || compgen -G "$name.*" >/dev/null || compgen -G "${name}_test*" >/dev/null || echo "$page: there is no $name"
    done || :
  done
)
[[ ! $missing ]] || { echo "$missing" && exit 1; }
! command -v python3 >/dev/null || python3 docs/pictures/draw.py --check

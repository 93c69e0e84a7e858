#!/usr/bin/env bash
# Tests the parts of ./dev that need no environment: usage, apt sources, the host's ROCm, whose folders are used, what exec sees.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
dev=$here/../../dev
# shellcheck source=dev
source "$dev"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

equal() { # WHAT GOT WANTED
  [[ $2 == "$3" ]] && return
  printf 'FAILED: %s\n   got: %s\nwanted: %s\n' "$1" "$2" "$3"
  failures=$((failures + 1))
}

status_of() {
  local status=0
  "$@" >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}

test_usage() {
  equal 'no command' "$(status_of "$dev")" 2
  equal 'unknown command' "$(status_of "$dev" frobnicate)" 2
  equal 'it is named' "$(grep -c "unknown command 'frobnicate'" "$work/err")" 1
  equal 'an option without its value' "$(status_of "$dev" build --preset)" 2
  equal 'exec without a command' "$(status_of "$dev" exec)" 2
  equal 'a suite that is no name' "$(status_of "$dev" --suite '../x' setup)" 1
  equal 'help' "$(status_of "$dev" --help)" 0
  equal 'help goes to the output' "$(grep -c '^usage: ./dev' "$work/out")" 1
}

sources() { printf '%s\n' "$@" >"$work/sources" && read_sources bookworm "$work/sources" | tr '\t' ' '; }

test_apt_sources() {
  equal 'one line' "$(sources 'deb http://m.test/debian bookworm main')" 'http://m.test/debian '
  equal 'options' "$(sources 'deb  [ arch=amd64 signed-by=/k/a.gpg ] https://m.test/d bookworm contrib main # ours')" 'https://m.test/d /k/a.gpg'
  equal 'sources, security, other components and comments are passed over' "$(sources 'deb-src http://a.test/d bookworm main' \
    '# deb http://b.test/d bookworm main' 'deb http://c.test/d bookworm-security main' 'deb http://d.test/d bookworm universe' \
    'deb cdrom:[Debian 12]/ bookworm main' 'deb http://e.test/d testing main')" 'http://e.test/d '
  equal 'another distribution has none' "$(sources 'deb http://m.test/ubuntu noble main')" ''
  equal 'deb822' "$(sources 'Types: deb deb-src' '# comment' 'URIs: http://m.test/debian' 'Suites: bookworm bookworm-updates' \
    'Components: main' 'Signed-By: /k/b.gpg')" 'http://m.test/debian /k/b.gpg'
  equal 'deb822: disabled, then security, then a folded field' "$(sources 'Types: deb' 'URIs: http://a.test' 'Suites: bookworm' \
    'Components: main' 'Enabled: no' '' 'Types: deb' 'URIs: http://b.test' 'Suites: bookworm-security' 'Components: main' '' \
    'types: deb' 'uris: http://c.test' 'suites:' ' bookworm' 'components: main contrib')" 'http://c.test '
  equal 'deb822: an embedded key is no file' "$(sources 'Types: deb' 'URIs: http://m.test' 'Suites: stable' 'Components: main' \
    'Signed-By:' ' -----BEGIN PGP PUBLIC KEY BLOCK-----' ' .' ' mDMEY865UxYJKwYBBAHaRw8' ' -----END PGP PUBLIC KEY BLOCK-----')" 'http://m.test '
}

# A folder like /opt/rocm with a hipRTC of version $1; its comgr links to no shared LLVM.
fake_rocm() {
  rm -rf "$work/rocm" && mkdir -p "$work/rocm/lib"
  : >"$work/rocm/lib/libhiprtc.so.$1.43000" && ln -s "libhiprtc.so.$1.43000" "$work/rocm/lib/libhiprtc.so.${1%%.*}"
  : >"$work/rocm/lib/libamd_comgr.so.2"
}

# shellcheck disable=SC2016 # $1 is for the program
fake_llvm() { # VERSION: an llvm-config with its CMake files
  mkdir -p "$work/rocm/llvm/bin" && : >"$work/rocm/llvm/LLVMConfig.cmake"
  printf '#!/bin/sh\ncase $1 in --version) echo %s;; --cmakedir) echo %s;; esac\n' "$1" "$work/rocm/llvm" >"$work/rocm/llvm/bin/llvm-config"
  chmod +x "$work/rocm/llvm/bin/llvm-config"
}

test_host() {
  export ROCM_PATH=$work/rocm
  host_tools_lacking() { :; }
  fake_rocm 6.1 && check_host
  equal 'ROCm 6.1' "$lacks" "hipRTC is 6.1 ($work/rocm/lib/libhiprtc.so.6), and 6.2 or newer is needed"
  fake_rocm 6.10 && fake_llvm 20.1.0 && check_host
  equal 'ROCm 6.10 with LLVM 20' "$lacks" ''
  equal 'its folder' "$host_rocm" "$work/rocm/lib"
  equal 'its LLVM' "$host_llvm_config" "$work/rocm/llvm/bin/llvm-config"
  fake_rocm 7.0 && fake_llvm 19.0.0
  equal 'LLVM 19 alone is none' "$(host_llvm 19)" ''
  fake_llvm 22.0.0git
  equal 'LLVM 22 when 21 is asked for' "$(host_llvm 21 | grep "$work")" ''
  equal 'LLVM 22' "$(host_llvm 22)" "$work/rocm/llvm/bin/llvm-config"
}

# Runs `require_private` in a shell of its own, since it ends the script; prints what it says first.
private() { (require_private "$1") 2>&1 | head -n 1; }

test_private_folders() {
  mkdir "$work/mine" && chmod 755 "$work/mine"
  equal 'a folder of ours' "$(private "$work/mine")" ''
  ln -s "$work/mine" "$work/link"
  equal 'a link' "$(private "$work/link")" "dev: $work/link is a symbolic link, and what lies behind it is not trusted"
  chmod 775 "$work/mine"
  equal 'one that others can write' "$(private "$work/mine")" "dev: $work/mine can be written by other users (mode 775)"
  equal 'one of somebody else' "$( (id() { [[ $1 == -u ]] && echo 4242 || echo me; } && private /) )" 'dev: / belongs to user 0, not to me'
}

# The build folder's mark is never written through a link.
test_mark() {
  mkdir "$work/tree" && ln -s "$work/mine" "$work/tree/build"
  equal 'a build folder that is a link' "$( (tree=$work/tree build=build environment=e preset=default && configure) 2>&1 | head -n 1)" \
    'dev: build or .dev-environment in it is a symbolic link'
}

# An expired archive is accepted for a root of our own, never for the machine itself.
test_host_packages() {
  local log=$work/log
  : >"$work/calls"
  (
    id() { echo 0; }
    apt-get() { echo "apt-get $*" >>"$work/calls"; }
    command() { [[ $2 != mmdebstrap ]]; }
    need_mmdebstrap
  ) >/dev/null 2>&1
  equal 'how apt is called' "$(tr '\n' ';' <"$work/calls")" 'apt-get update;apt-get install --yes --no-install-recommends mmdebstrap;'
}

# Roots that were unused for two weeks go, each under its own lock, and never while somebody is in it.
test_prune() {
  local old=$work/roots/debian-forky-old now=$work/roots/debian-forky-now lock
  local cache=$work/roots suite=forky root=$now
  mkdir -p "$old" "$now" "$work/roots/debian-forky-young" "$work/roots/debian-sid-old"
  touch "$work/roots"/debian-forky-{old,now,young}.lock "$work/roots/debian-sid-old.lock"
  touch -d '20 days ago' "$work/roots"/debian-forky-{old,now}.lock "$work/roots/debian-sid-old.lock"
  exec {lock}<"$old.lock"
  flock --shared "$lock" # a process of another ./dev lives in it
  prune_roots 2>/dev/null
  equal 'a root in use' "$(ls "$work/roots" | grep -vc lock)" 4
  exec {lock}>&-
  held=no
  remove_tree() { flock --nonblock --shared "$1.lock" true || held=yes; rm -rf "$1"; }
  prune_roots 2>/dev/null
  equal 'its lock while it goes' "$held" yes
  equal 'what stays: this one, a young one, another suite' "$(ls "$work/roots" | grep -v lock | tr '\n' ' ')" 'debian-forky-now debian-forky-young debian-sid-old '
  equal 'its lock afterwards' "$(flock --nonblock --shared "$old.lock" echo free)" free
}

test_places() {
  equal 'what arguments name' "$( (cd "$work" && tree=/nowhere places=/nowhere && add_places "--x=$work/mine" /usr/bin relative 2>/dev/null && echo "$places" | tr '\n' ' ') )" \
    "/nowhere $work $work/mine "
}

test_usage
test_apt_sources
test_host
test_private_folders
test_mark
test_host_packages
test_prune
test_places
[[ $failures == 0 ]] || exit 1
echo 'all passed'

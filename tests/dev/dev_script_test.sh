#!/usr/bin/env bash
# Tests the parts of ./dev that need no environment: usage, distributions and their apt sources, the host's ROCm and GPU, whose folders are
# used, what exec sees. distributions.sh and gpu_machine.sh beside this file try the same in earnest.
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

# Lays out another machine in $work/m: its os-release, and apt sources in one file.
lay_out() { # ID ID_LIKE CODENAME [LINES OF SOURCES]
  rm -rf "$work/m" "$work/cache" && mkdir -p "$work/m/etc/apt/sources.list.d" "$work/m/usr/share/keyrings" "$work/cache"
  printf 'ID=%s\nID_LIKE="%s"\nVERSION_CODENAME=%s\n' "$1" "$2" "$3" >"$work/m/etc/os-release"
  printf '%s\n' "${@:4}" >"$work/m/etc/apt/sources.list"
}

# What find_mirror chooses there: "MIRROR KEYRING", $work left out; or the lines that it dies with.
chosen() { (machine=$work/m cache=$work/cache && can_install() { false; } && find_mirror && echo "$mirror $keyring") 2>&1 | sed "s|$work/||g"; }
keyring_there() { : >"$work/m/usr/share/keyrings/debian-archive-keyring.gpg"; }

# Only a Debian's own sources are Debian's, whatever another distribution calls its suites.
test_distributions() {
  lay_out ubuntu debian noble 'deb http://u.test/ubuntu noble main' 'deb http://u.test/ubuntu noble-updates main'
  keyring_there
  equal 'Ubuntu 24.04' "$(chosen)" ' m/usr/share/keyrings/debian-archive-keyring.gpg'
  lay_out ubuntu debian jammy 'deb http://u.test/ubuntu jammy main' 'deb http://v.test/stable stable main'
  equal 'Ubuntu 22.04 without the keyring' "$(chosen | head -n 3 | tr '\n' '|')" "dev: there is no keyring to check Debian's archive with (/usr/share/keyrings/debian-archive-keyring.gpg)|     this gets it: sudo apt-get install debian-archive-keyring|     or name one: export KILN_DEV_KEYRING=/path/to/debian-archive-keyring.gpg|"
  equal 'the advice followed' "$(KILN_DEV_KEYRING=/dev/null chosen)" ' /dev/null'
  : >"$work/cache/debian-archive-keyring.gpg"
  equal 'a keyring that was fetched earlier' "$(chosen)" ' cache/debian-archive-keyring.gpg'
  lay_out fedora '' ''
  equal 'Fedora' "$(chosen | sed -n 2p)" '     this gets it: sudo dnf install debian-keyring'
  lay_out arch '' ''
  equal 'Arch' "$(chosen | sed -n 2p)" '     this gets it: sudo pacman -S debian-archive-keyring'
  lay_out rocky 'rhel centos fedora' ''
  keyring_there
  equal 'Rocky with the keyring' "$(chosen)" ' m/usr/share/keyrings/debian-archive-keyring.gpg'
  lay_out opensuse-leap 'suse opensuse' ''
  equal 'openSUSE: a container' "$(chosen | grep -c 'podman run .* debian:trixie ./dev demo')" 1
  lay_out debian '' trixie 'deb http://vendor.test/apt trixie main' 'deb [signed-by=/dev/null] http://m.test/debian/ trixie main'
  equal "Debian: its own mirror before a vendor's" "$(chosen)" 'http://m.test/debian/ /dev/null'
  lay_out debian '' trixie 'deb http://mirror.test/d trixie main'
  keyring_there
  equal 'Debian: a mirror under another name' "$(chosen)" 'http://mirror.test/d m/usr/share/keyrings/debian-archive-keyring.gpg'
  equal 'a mirror that is named' "$(KILN_DEV_MIRROR=http://mine.test chosen)" 'http://mine.test m/usr/share/keyrings/debian-archive-keyring.gpg'
  equal 'no mmdebstrap on Fedora' "$( (machine=$work/m && printf 'ID=fedora\n' >"$work/m/etc/os-release" && can_install() { false; } && command() { false; } && need_mmdebstrap) 2>&1 | grep -c 'Debian container has all of it: podman run')" 1
}

# The archive that mmdebstrap knows, for the suites that are wanted; in both formats of sources.
test_keep_archive() {
  mkdir -p "$work/r/etc/apt/sources.list.d"
  printf 'deb http://a.test/debian sid main\ndeb http://a.test/security sid-security main\n' >"$work/r/etc/apt/sources.list"
  keep_archive "$work/r" sid experimental
  equal 'one-line' "$(tr '\n' '|' <"$work/r/etc/apt/sources.list")" 'deb http://a.test/debian sid main|deb http://a.test/debian experimental main|'
  : >"$work/r/etc/apt/sources.list"
  printf 'Types: deb\nURIs: http://b.test/debian\nSuites: sid\n' >"$work/r/etc/apt/sources.list.d/x.sources"
  keep_archive "$work/r" sid
  equal 'deb822' "$(cat "$work/r/etc/apt/sources.list") $(ls "$work/r/etc/apt/sources.list.d")" 'deb http://b.test/debian sid main '
}

# A machine with GPUs, made of plain files.
test_gpu() {
  local machine=$work/gpu node
  equal 'no GPU' "$(has_gpu && echo yes)$(gpu_archs)$(gpu_groups)$(default_suite)" forky
  for node in 0 1 2; do mkdir -p "$machine/sys/class/kfd/kfd/topology/nodes/$node"; done
  printf 'cpu_cores_count 96\ngfx_target_version 0\n' >"$machine/sys/class/kfd/kfd/topology/nodes/0/properties"
  printf 'gfx_target_version 90402\n' | tee "$machine/sys/class/kfd/kfd/topology/nodes/1/properties" >"$machine/sys/class/kfd/kfd/topology/nodes/2/properties"
  mkdir -p "$machine/dev/dri" && : >"$machine/dev/kfd" && : >"$machine/dev/dri/renderD128"
  equal 'its architecture, once' "$(has_gpu && gpu_archs)" gfx942
  [[ $(id -u) != 0 ]] || chgrp 105 "$machine/dev/dri/renderD128"
  [[ $(id -u) != 0 ]] || equal 'the groups of its nodes' "$(gpu_groups)" 0,105
  equal 'its suite' "$(default_suite)" forky
  printf 'gfx_target_version 90500\n' >"$machine/sys/class/kfd/kfd/topology/nodes/2/properties"
  equal 'a gfx950 needs HIP 7' "$(default_suite 2>/dev/null)" experimental
  equal 'and it is said why' "$(default_suite 2>&1 >/dev/null | grep -c 'gfx950, which HIP 6.4 of Debian forky does not know')" 1
}

# What programs in the root see of the caller: variables of HIP, the groups of the GPU, a library by the file behind its links.
test_inside() {
  local machine=$work/gpu cache=$work/cache places=$tree root=/nowhere namespace=(env) seen
  mkdir -p "$work/cache/stage" "$work/rocm-7.2/lib" && : >"$work/rocm-7.2/lib/libamdhip64.so.7" && ln -sfn rocm-7.2 "$work/rocm-link"
  namespace=(printf '%s\n')
  seen=$(export HSA_X=1 GPU_X=2 ROCR_X=3 HIP_X=4 AMD_X=5 OTHER_X=6 KILN_HIP_PATH=$work/rocm-link/lib/libamdhip64.so.7 && inside_root true)
  equal 'variables' "$(grep -xE '[A-Z]+_X=.' <<<"$seen" | sort | tr '\n' ' ')" 'AMD_X=5 GPU_X=2 HIP_X=4 HSA_X=1 ROCR_X=3 '
  equal 'the library itself' "$(grep -c "^KILN_HIP_PATH=$work/rocm-7.2/lib/libamdhip64.so.7\$" <<<"$seen")" 1
  namespace=(bash -c 'echo "$readonly_places|$groups"')
  seen=$(KILN_HIP_PATH=$work/rocm-link/lib/libamdhip64.so.7 inside_root true)
  equal 'its ROCm, and the groups' "${seen%|*}" "$work/rocm-7.2"
  [[ $(id -u) != 0 ]] || equal 'the groups' "${seen#*|}" 0,105
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
  equal 'ROCm 6.10 with LLVM 20' "$lacks$remedy" ''
  equal 'its folder' "$host_rocm" "$work/rocm/lib"
  equal 'its LLVM' "$host_llvm_config" "$work/rocm/llvm/bin/llvm-config"
  fake_rocm 7.0 && fake_llvm 19.0.0
  equal 'LLVM 19 alone is none' "$(host_llvm 19)" ''
  host_llvm() { :; }
  check_host
  equal 'what LLVM 19 lacks is said' "${lacks##*; }" 'LLVM 19.0.0 cannot read gfx950'
  equal 'and one line gets it' "$(machine=$work/m && lay_out ubuntu debian noble && build_packages_line | grep -c '^apt-get install g++-13 .*llvm-20-dev')" 1
  source "$tree/cmake/host.sh"
  host_tools_lacking() { :; }
  fake_llvm 22.0.0git
  equal 'LLVM 22 when 21 is asked for' "$(host_llvm 21 | grep "$work")" ''
  equal 'LLVM 22' "$(host_llvm 22)" "$work/rocm/llvm/bin/llvm-config"
}

# ROCm without /opt/rocm: Python packages, which a tool names, and versioned folders, of which the newest is taken.
test_rocm_layouts() {
  local machine=$work/layout path=$PATH
  unset ROCM_PATH
  mkdir -p "$machine/opt/rocm-7.2.0/lib" "$machine/opt/rocm-6.4.3/lib" "$machine/opt/rocm-10.0.0/lib" "$work/wheel/lib/llvm/bin" "$work/tool"
  equal 'the newest versioned folder' "$(rocm_folders | head -n 1)" "$machine/opt/rocm-10.0.0"
  : >"$machine/opt/rocm-7.2.0/lib/libhiprtc.so.7"
  equal 'the newest that has it' "$(host_library 'libhiprtc.so.[67]')" "$machine/opt/rocm-7.2.0/lib/libhiprtc.so.7"
  printf '#!/bin/sh\n[ "$*" = "path --root" ] && echo %s\n' "$work/wheel" >"$work/tool/rocm-sdk" && chmod +x "$work/tool/rocm-sdk"
  : >"$work/wheel/lib/libhiprtc.so.7"
  PATH=$work/tool:$path
  equal 'Python packages' "$(host_library 'libhiprtc.so.[67]')" "$work/wheel/lib/libhiprtc.so.7"
  equal 'HIP_PATH comes first' "$(HIP_PATH=$machine/opt/rocm-7.2.0 host_library 'libhiprtc.so.[67]')" "$machine/opt/rocm-7.2.0/lib/libhiprtc.so.7"
  printf '#!/bin/sh\ncase $1 in --version) echo 22.0.0;; --cmakedir) echo %s;; esac\n' "$work/wheel" >"$work/wheel/lib/llvm/bin/llvm-config"
  chmod +x "$work/wheel/lib/llvm/bin/llvm-config" && : >"$work/wheel/LLVMConfig.cmake"
  equal 'their LLVM' "$(host_llvm)" "$work/wheel/lib/llvm/bin/llvm-config"
  PATH=$path
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

test_line_break() {
  local folder=$work/$'a\nb'
  mkdir "$folder" && cp "$tree/dev" "$folder/dev"
  equal 'a folder with a line break in its name' "$("$folder/dev" build 2>&1)" \
    'dev: the name of this folder has a line break, which CMake and mounts cannot have; use another folder'
}

test_usage
test_line_break
test_apt_sources
test_distributions
test_keep_archive
test_gpu
test_inside
test_rocm_layouts
test_host
test_private_folders
test_mark
test_host_packages
test_prune
test_places
[[ $failures == 0 ]] || exit 1
echo 'all passed'

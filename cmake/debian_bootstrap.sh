# shellcheck shell=bash
# How ./dev's Debian root comes to its files: the archive, its keyring, mmdebstrap, and the packages by the names that a suite has.

# Runs as mmdebstrap's hook, with apt on the root $1 of suite $2: chooses the names that this suite has, and installs.
# hipRTC and LLVM come into one process, so LLVM has to be the version that the suite's comgr is linked with.
install_packages() {
  newest() { apt-cache search --names-only "^$1\$" | cut -d' ' -f1 | sort -V | tail -n 1; }
  local hiprtc comgr llvm package wanted missing=()
  export APT_CONFIG=$MMDEBSTRAP_APT_CONFIG
  if [[ $2 == experimental ]]; then # the rest comes from unstable: experimental is no complete suite
    printf 'Package: %s\nPin: release a=experimental\nPin-Priority: 990\n' 'libamd-comgr* libhiprtc* libamdhip64* libhsa-runtime64*' >"$1/etc/apt/preferences.d/kiln"
  fi
  hiprtc=$(newest 'libhiprtc[67]')
  comgr=$(newest 'libamd-comgr[23]')
  llvm=$(apt-cache depends "${comgr:-none}" 2>/dev/null | sed -nE 's/.*Depends: libllvm([0-9]+).*/\1/p' | head -n 1)
  llvm=${llvm:-$(newest 'llvm-2[0-2]-dev' | tr -cd 0-9)}
  if [[ ! $hiprtc || ! $comgr || ! $llvm || $llvm -lt 20 || $llvm -gt 22 ]]; then
    echo "E: Kiln needs hipRTC 6 or 7, comgr 2 or 3 and LLVM 20 to 22; $2 has: ${hiprtc:-no libhiprtc[67]}, ${comgr:-no libamd-comgr[23]}, LLVM ${llvm:-unknown}"
    return 1
  fi
  wanted=("${packages[@]}" "$hiprtc" "libhiprtc-builtins${hiprtc#libhiprtc}" "$comgr" "llvm-$llvm-dev" "clang-$llvm" "lld-$llvm")
  for package in "${wanted[@]}"; do
    [[ $(newest "${package//+/\\+}") ]] || missing+=("$package")
  done
  [[ ${#missing[@]} == 0 ]] || { echo "E: the suite $2 of this mirror has no package ${missing[*]}" && return 1; }
  # apt runs outside (it has the host's network set-up) and dpkg inside, the way mmdebstrap itself does it.
  apt-get install --yes --no-install-recommends -o APT::Status-Fd=1 -o DPkg::Chroot-Directory="$1" -o Dir::Bin::dpkg=env \
    -o DPkg::Options::=--unset=TMPDIR -o DPkg::Options::=dpkg "${wanted[@]}"
  echo "$llvm" >"$1/etc/kiln-llvm"
}

# Reads a Debian's apt sources of both formats (deb lines, deb822) and prints "URI<tab>KEYRING" of those with the release `codename`,
# or with a suite's name that Debian has, and with the component main.
read_sources() {
  awk -v codename="$1" '
    function flush_stanza() { if (types ~ /(^| )deb( |$)/ && enabled !~ /^no/) offer(uris, suites, components, keyring)
                              types = uris = suites = components = keyring = enabled = key = "" }
    function offer(uris, suites, components, keyring,   uri, i, n, suite) {
      split(uris, uri, " "); n = split(suites, suite, " ")
      if (components !~ /(^| )main( |$)/ || uri[1] ~ /^cdrom:/) return
      for (i = 1; i <= n; i++) if (suite[i] == codename || suite[i] ~ /^(stable|testing|unstable|sid|experimental)$/) {
        print uri[1] "\t" (keyring ~ /^\// ? keyring : ""); return }
    }
    FNR == 1 { flush_stanza() }
    /^[ \t]*#/ { next }
    /^[ \t]*$/ { flush_stanza(); next }
    /^deb[ \t]/ { signed = ""; sub(/#.*/, "")
      if (match($0, /\[[^\]]*\]/)) { options = substr($0, RSTART, RLENGTH); sub(/\[[^\]]*\]/, "")
        if (match(options, /signed-by=[^] ,]*/)) signed = substr(options, RSTART + 10, RLENGTH - 10) }
      line = $0; gsub(/[ \t]+/, " ", line); split(line, word, " "); rest = line; sub(/^deb [^ ]+ [^ ]+ ?/, "", rest)
      offer(word[2], word[3], rest, signed); next }
    /^[A-Za-z-]+:/ { key = tolower(substr($0, 1, index($0, ":") - 1)); sub(/^[^:]*:[ \t]*/, "") }
    key == "types" { types = types " " $0 } key == "uris" { uris = uris " " $0 } key == "suites" { suites = suites " " $0 }
    key == "components" { components = components " " $0 } key == "enabled" { enabled = $0 }
    key == "signed-by" && keyring == "" { keyring = $1 }
    END { flush_stanza() }' "${@:2}"
}

# Sets `mirror` and `keyring`: KILN_DEV_MIRROR and KILN_DEV_KEYRING, else those of a Debian's own apt sources. Another distribution's
# archive is not Debian's, whatever its suites are called: there `mirror` stays empty, and mmdebstrap takes the one it knows.
find_mirror() {
  local files=() file own='' codename
  mirror=${KILN_DEV_MIRROR:-}
  if [[ ! $mirror && $(os_release ID) == debian ]]; then
    codename=$(os_release VERSION_CODENAME)
    for file in "$machine"/etc/apt/sources.list "$machine"/etc/apt/sources.list.d/*.list "$machine"/etc/apt/sources.list.d/*.sources; do
      [[ ! -r $file ]] || files+=("$file")
    done
    # Others than Debian name their suites after its releases too; its own mirrors end in /debian.
    [[ ${#files[@]} == 0 ]] || IFS=$'\t' read -r mirror own < <(read_sources "${codename:-none}" "${files[@]}" |
      awk -F '\t' '!any { any = $0 } $1 ~ /\/debian\/?$/ { print; any = ""; exit } END { if (any) print any }') || :
  fi
  keyring=${KILN_DEV_KEYRING:-}
  for file in "$cache/debian-archive-keyring.gpg" "$own" "$machine"/usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
    [[ $keyring || ! -r $file ]] || keyring=$file
  done
  [[ -r $keyring || ${KILN_DEV_KEYRING:-} ]] || ! can_install || { install_here debian-archive-keyring && keyring=$machine/usr/share/keyrings/debian-archive-keyring.gpg; }
  [[ -r $keyring ]] || die "there is no keyring to check Debian's archive with (${keyring:-/usr/share/keyrings/debian-archive-keyring.gpg})" \
    "$(keyring_line)" 'or name one: export KILN_DEV_KEYRING=/path/to/debian-archive-keyring.gpg'
}

keyring_line() {
  case $(package_manager) in
    apt) echo 'this gets it: sudo apt-get install debian-archive-keyring' ;;
    dnf) echo 'this gets it: sudo dnf install debian-keyring' ;;
    pacman) echo 'this gets it: sudo pacman -S debian-archive-keyring' ;;
    *) echo "or take a Debian container: $(container_line)" ;;
  esac
}

can_install() { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; }

# Installs a package on this machine, by its own sources.
install_here() {
  say "installing $1 on this machine"
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$1"; } </dev/null 2>&1 | condense "$log" ||
    die "$1 could not be installed; see $log" "$(tail -n 5 "$log")" "it may be in a component that this machine's sources lack (Ubuntu: universe)"
}

need_mmdebstrap() {
  local remedy
  command -v mmdebstrap >/dev/null && return
  remedy="a Debian container has all of it: $(container_line)"
  [[ $(package_manager) != apt ]] || remedy='this gets it: sudo apt-get install mmdebstrap uidmap debian-archive-keyring'
  can_install || die 'mmdebstrap is needed to build the environment' "$remedy"
  install_here mmdebstrap
}

# mmdebstrap OPTIONS: with the options that are always needed, and its standard input closed.
run_mmdebstrap() {
  mmdebstrap --skip=check/qemu --keyring="$keyring" --aptopt='Acquire::Check-Valid-Until "false"' "$@" </dev/null
}

# Runs as a hook of mmdebstrap on the root $1, before it fetches anything: keeps the archive that mmdebstrap knows, for the suites $2...
keep_archive() {
  local root=$1 archive suite
  archive=$({ grep -ohsE 'https?://[^ ]+' "$root/etc/apt/sources.list" "$root"/etc/apt/sources.list.d/* || :; } | head -n 1)
  rm -f "$root"/etc/apt/sources.list.d/*
  for suite in "${@:2}"; do echo "deb $archive $suite main"; done >"$root/etc/apt/sources.list"
}

# An older keyring may lack the keys that sign the archive now. It checks an older release, which has a newer keyring as a package.
renew_keyring() {
  local release folder=$cache/keyring.partial
  [[ ! ${KILN_DEV_KEYRING:-} ]] || return 1
  KILN_HOOK=$(declare -f keep_archive)
  export KILN_HOOK
  for release in trixie bookworm bullseye; do
    say "the keyring $keyring is too old; looking for a newer one in Debian $release, if it can check that"
    remove_tree "$folder"
    run_mmdebstrap --mode="$([[ ${namespace[*]} != *--user* ]] && echo root || echo unshare)" --variant=extract --include=debian-archive-keyring --format=tar \
      --setup-hook="bash -euc \"\$KILN_HOOK; keep_archive \\\"\\\$@\\\"\" hook \"\$1\" $release" "$release" - ${mirror:+"deb $mirror $release main"} 2>>"$log" >"$folder.tar" || continue
    mkdir "$folder" && tar -x -C "$folder" --no-same-owner --wildcards -f "$folder.tar" './usr/share/keyrings/*' || continue
    cp -L "$folder"/usr/share/keyrings/debian-archive-keyring.gpg "$cache/debian-archive-keyring.gpg" || continue
    keyring=$cache/debian-archive-keyring.gpg
    break
  done
  rm -f "$folder.tar"
  remove_tree "$folder"
  [[ $keyring == "$cache"/* ]]
}

# Fills the folder $1 with the root. Unprivileged, it arrives as an archive and is unpacked as files of the user, who can then
# use and remove it without a range of user ids.
bootstrap() {
  local base=$suite suites=("$suite") lines=() options
  [[ $suite != experimental ]] || { base=sid && suites=(sid experimental); }
  [[ ! $mirror ]] || mapfile -t lines < <(printf "deb $mirror %s main\n" "${suites[@]}")
  options=(--variant=apt --dpkgopt=force-unsafe-io
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*'
    --customize-hook="bash -euo pipefail -c \"\$KILN_HOOK; install_packages \\\"\\\$@\\\"\" hook \"\$1\" $suite >&2")
  [[ $mirror ]] || options+=(--setup-hook="bash -euc \"\$KILN_HOOK; keep_archive \\\"\\\$@\\\"\" hook \"\$1\" ${suites[*]}")
  KILN_HOOK=$(declare -p packages && declare -f install_packages keep_archive)
  export KILN_HOOK
  if [[ ${namespace[*]} != *--user* ]]; then
    "${namespace[@]}" bash -c "$(declare -f run_mmdebstrap); keyring=\$1; shift; run_mmdebstrap \"\$@\"" bash "$keyring" --mode=root --format=directory "${options[@]}" "$base" "$1" "${lines[@]}"
  else
    mkdir "$1"
    run_mmdebstrap --mode=unshare --format=tar "${options[@]}" "$base" - "${lines[@]}" | tar -x -C "$1" --no-same-owner --exclude='./dev/*'
  fi
}

# Runs bootstrap into $1 as a process group of its own, which an interruption ends as a whole. Returns its status.
bootstrap_apart() {
  local pid status=0
  remove_tree "$1"
  set -m
  bootstrap "$1" > >(condense "$log") 2>&1 &
  pid=$!
  set +m
  # shellcheck disable=SC2064 # what is there now
  trap "kill -TERM -- -$pid 2>/dev/null; wait $pid || :; remove_tree '$1'; die 'interrupted; nothing is left behind'" INT TERM HUP
  wait $pid || status=$?
  trap - INT TERM HUP
  return $status
}


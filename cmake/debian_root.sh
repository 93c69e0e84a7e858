# shellcheck shell=bash
# The Debian root of ./dev: built once from the host's own mirror, kept in the user's cache, entered in a private mount namespace.
# Read by ./dev, whose say, die and condense it uses, and whose variables tree, cache, suite, lacks and last.

recipe=1 # counts up when roots have to be built anew for another reason than their packages
packages=(g++ cmake ninja-build ccache libfmt-dev doctest-dev libcli11-dev nlohmann-json3-dev libzstd-dev zlib1g-dev libcurl4-openssl-dev libssl-dev)
# What a command adds to the root when it first needs it (add_packages); LLVM's tools have its version in their names.
gcc13_packages=(g++-13) # the preset
docs_packages=(doxygen)
format_packages=(clang-format-LLVM)
package_packages=(dpkg-dev file python3-setuptools) # ./dev package: dpkg-shlibdeps and file for the .deb, setuptools for the wheel
tidy_packages=(clang-tidy-LLVM)
test_packages=(python3-numpy python3-setuptools libggml0 libggml-dev llama.cpp-tests llama.cpp-tools)
# Real programs that tests run against, which skip without them: taken if the suite has them.
optional_test_packages=(nginx-light slurmd slurmctld slurm-client munge python3-jsonschema libtvm-ffi-dev python3-tvm-ffi "${package_packages[@]}" python3-pip mount)
# What --with NAME adds for the tests: NAME_packages. Big ones, which nobody gets without asking.
torch_packages=(python3-torch)

# Runs as mmdebstrap's hook, with apt on the root $1 of suite $2: chooses the names that this suite has, and installs.
# hipRTC and LLVM come into one process, so LLVM has to be the version that the suite's comgr is linked with.
install_packages() {
  newest() { apt-cache search --names-only "^$1\$" | cut -d' ' -f1 | sort -V | tail -n 1; }
  local hiprtc comgr llvm package wanted missing=()
  export APT_CONFIG=$MMDEBSTRAP_APT_CONFIG
  if [[ $2 == experimental ]]; then # the rest comes from unstable: experimental is no complete suite
    printf 'Package: %s\nPin: release a=experimental\nPin-Priority: 990\n' 'libamd-comgr* libhiprtc*' >"$1/etc/apt/preferences.d/kiln"
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

# Reads apt sources of both formats (deb lines, deb822) and prints "URI<tab>KEYRING" of those with the release `codename`, or
# with a suite's name of Debian's own, and with the component main.
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

# Sets `mirror` and `keyring`: KILN_DEV_MIRROR and KILN_DEV_KEYRING, else the Debian archive of the host's own apt sources.
find_mirror() {
  local codename files=() file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [[ ! -r $file ]] || files+=("$file")
  done
  codename=$(sed -nE 's/^VERSION_CODENAME="?([a-z]+).*/\1/p' /etc/os-release 2>/dev/null || :)
  mirror='' keyring=''
  [[ ${#files[@]} == 0 ]] || IFS=$'\t' read -r mirror keyring < <(read_sources "${codename:-none}" "${files[@]}") || :
  [[ ! ${KILN_DEV_MIRROR:-} ]] || { mirror=$KILN_DEV_MIRROR && keyring=''; }
  keyring=${KILN_DEV_KEYRING:-${keyring:-/usr/share/keyrings/debian-archive-keyring.gpg}}
  [[ $mirror ]] || die "this machine's apt sources name no Debian archive to build the environment from" \
    'set KILN_DEV_MIRROR to the address of one (and KILN_DEV_KEYRING to its keyring), or install ROCm 6.2 and LLVM 20 or newer'
  [[ -r $keyring ]] || die "there is no keyring $keyring to check the archive $mirror with" \
    'install the package debian-archive-keyring, or set KILN_DEV_KEYRING'
}

need_mmdebstrap() {
  command -v mmdebstrap >/dev/null && return
  { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; } || die 'mmdebstrap is needed to build the environment' \
    'install the package mmdebstrap (with uidmap when not root), or run ./dev setup once as root'
  say 'installing mmdebstrap on this machine'
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends mmdebstrap; } </dev/null 2>&1 | condense "$log" ||
    die "mmdebstrap could not be installed; see $log" "$(tail -n 5 "$log")"
}

# Fills the folder $1 with the root. Unprivileged, it arrives as an archive and is unpacked as files of the user, who can then
# use and remove it without a range of user ids.
bootstrap() {
  local base=$suite lines=("deb $mirror $suite main") options
  [[ $suite != experimental ]] || { base=sid && lines=("deb $mirror sid main" "${lines[@]}"); }
  options=(--variant=apt --skip=check/qemu --keyring="$keyring" --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=force-unsafe-io
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*'
    --customize-hook="bash -c \"\$KILN_HOOK\" hook \"\$1\" $suite >&2")
  export KILN_HOOK
  KILN_HOOK=$(declare -p packages && declare -f install_packages && echo 'set -euo pipefail; install_packages "$@"')
  if [[ ${namespace[*]} != *--user* ]]; then
    "${namespace[@]}" mmdebstrap --mode=root --format=directory "${options[@]}" "$base" "$1" "${lines[@]}" </dev/null
  else
    mkdir "$1"
    mmdebstrap --mode=unshare --format=tar "${options[@]}" "$base" - "${lines[@]}" </dev/null | tar -x -C "$1" --no-same-owner --exclude='./dev/*'
  fi
}

# Builds the root under another name beside it and renames it when it is complete. The caller holds the lock.
build_root() {
  local partial=$root.partial pid status=0 hint=''
  log=$root.log
  : >"$log"
  find_mirror
  need_mmdebstrap
  (($(df --output=avail -k "$cache" | tail -n 1) > 4000000)) || die "$cache has less than 4 GB free for the environment" 'free some, or set XDG_CACHE_HOME'
  remove_tree "$partial"
  say "building the environment, once: Debian $suite from $mirror, into $root"
  set -m # a process group of its own, which can be ended as a whole
  bootstrap "$partial" > >(condense "$log") 2>&1 &
  pid=$!
  set +m
  trap 'kill -TERM -- -$pid 2>/dev/null; wait $pid || :; remove_tree "$partial"; die "interrupted; nothing is left behind"' INT TERM HUP
  wait $pid || status=$?
  trap - INT TERM HUP
  if [[ $status != 0 ]]; then
    [[ ${namespace[*]} != *--user* ]] || hint="without root, mmdebstrap needs a range of ids for $(id -un) in /etc/subuid and /etc/subgid, and the package uidmap"
    remove_tree "$partial"
    die "the environment could not be built from suite $suite of $mirror; the whole log is $log" "$(grep -E '^(E|W): ' "$log" | grep -vE 'mmdebstrap failed|command failed|^E: apt-get|old ones used' | tail -n 12)" \
      ${hint:+"$hint"} 'KILN_DEV_MIRROR names another mirror, --suite another suite; ROCm 6.2 and LLVM 20 or newer on this machine serve as well'
  fi
  mv "$partial" "$root"
  prune_roots
}

# One file system only: whatever may be mounted below is not ours.
remove_tree() { [[ ! -e $1 ]] || rm -rf --one-file-system "$1"; }

# Removes roots of this suite that an older package list named, once nobody runs in them and they were unused for two weeks.
prune_roots() {
  local old lock
  for old in "$cache/debian-$suite"-*.lock; do
    old=${old%.lock}
    [[ $old != "$root" && -d $old && ! -L $old && $(find "$old.lock" -mtime +14) ]] || continue
    exec {lock}>>"$old.lock" # held until the root is gone: nobody can enter it meanwhile
    if flock --nonblock "$lock"; then
      say "removing $old, unused for two weeks"
      remove_tree "$old"
    fi
    exec {lock}>&-
  done
}

# Sets `namespace` to the command prefix that gives a private mount namespace.
find_namespace() {
  local option
  for option in '' '--user --map-root-user'; do
    # shellcheck disable=SC2206 # options, to be split
    namespace=(unshare --mount $option --propagation private)
    "${namespace[@]}" true 2>/dev/null && return
  done
  die 'no mount namespace can be made here, so no environment of our own can be used; one of these is needed:' \
    'root with CAP_SYS_ADMIN (in a container: --privileged, or --cap-add SYS_ADMIN), or' \
    'unprivileged user namespaces (sysctl user.max_user_namespaces; kernel.apparmor_restrict_unprivileged_userns=0), or' \
    "your own ROCm 6.2 or newer with LLVM 20 or newer (here: $lacks)"
}

# Programs of the root run as the caller, so nobody else may have put them there: the folder $1 has to be the caller's and closed to
# writers of other users, and no link.
require_private() {
  local owner mode
  [[ ! -L $1 ]] || die "$1 is a symbolic link, and what lies behind it is not trusted" 'remove it, or set XDG_CACHE_HOME to a folder of your own'
  read -r owner mode < <(stat -c '%u %a' "$1")
  [[ $owner == "$(id -u)" ]] || die "$1 belongs to user $owner, not to $(id -un)" 'set XDG_CACHE_HOME to a folder of your own'
  (((8#$mode & 8#022) == 0)) || die "$1 can be written by other users (mode $mode)" "chmod go-w '$1' after a look at what is in it, or remove it"
}

# Sets `root` and makes sure that it exists. Whoever uses it holds a shared lock on it until its last process has ended.
# A root is named by its recipe: another package list is another root, and neither disturbs the other's users.
ensure_root() {
  local lock
  find_namespace
  (umask 022 && mkdir -p "$cache/stage")
  require_private "$cache"
  root=$cache/debian-$suite-$(sha256sum <<<"$recipe ${packages[*]}" | cut -c 1-8)
  exec {lock}>>"$root.lock"
  flock --shared --nonblock "$lock" || { say 'another ./dev is building the environment; waiting for it' && flock --shared "$lock"; }
  if [[ ! -d $root ]]; then
    flock "$lock"
    [[ -d $root ]] || build_root
    flock --shared "$lock"
  fi
  require_private "$root"
  touch "$root.lock"
}

# Whether the root has a package, or its suite is known to lack it. Libraries that several architectures may have side by side are noted
# as NAME:ARCHITECTURE.
was_added() {
  [[ -e $root/var/lib/dpkg/info/$1.list || -e $root/etc/kiln-lacks-$1 ]] || compgen -G "$root/var/lib/dpkg/info/$1:*.list" >/dev/null
}

# Installs packages with apt's `options`: it resolves, fetches and checks signatures outside, which has the network and the keys.
install_added() {
  apt-get "${options[@]}" install --yes --no-install-recommends --download-only "$@" </dev/null 2>&1 |
    condense "$log" || die "the packages $* could not be fetched; the whole log is $log" "$(grep -E '^E: ' "$log" | tail -n 5)"
  (last='' as_root=1 && inside_root DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c 'dpkg --configure -a || :
      apt-get install --yes --no-install-recommends --no-download -o APT::Get::AllowUnauthenticated=true "$@" && apt-get clean' apt "$@") </dev/null 2>&1 |
    condense "$log" || die "the packages $* could not be installed; the whole log is $log" "$(tail -n 5 "$log")"
}

# Adds packages to the root unless they are there. Of those behind "--", the ones that the suite has.
add_packages() {
  local package wanted=() optional=() is_optional='' log=$root.log options lock unfinished=$root/etc/kiln-unfinished
  for package in "${@//LLVM/$(<"$root/etc/kiln-llvm")}"; do
    if [[ $package == -- ]]; then
      is_optional=1
    elif [[ -e $unfinished ]] || ! was_added "$package"; then
      [[ $is_optional ]] && optional+=("$package") || wanted+=("$package")
    fi
  done
  [[ ${#wanted[@]} != 0 || ${#optional[@]} != 0 ]] || return 0
  exec {lock}>>"$root.add.lock"
  flock "$lock"
  find_mirror
  say "adding to the environment: ${wanted[*]} ${optional[*]}"
  options=(-o Dir="$root" -o Dir::State::status="$root/var/lib/dpkg/status" -o Dir::Etc::Trusted="$keyring" -o Dir::Etc::TrustedParts=/dev/null
    -o APT::Architecture="$(dpkg --print-architecture)" -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update </dev/null 2>&1 | condense "$log" || die "no package lists could be fetched; the whole log is $log" "$(grep -E '^E: ' "$log" | tail -n 5)"
  for package in "${optional[@]}"; do
    if [[ $(apt-cache "${options[@]}" show --no-all-versions "$package" 2>/dev/null) ]]; then
      wanted+=("$package")
    else
      say "the suite has no package $package; the tests that need it are skipped"
      : >"$root/etc/kiln-lacks-$package"
    fi
  done
  if [[ ${#wanted[@]} == 0 ]]; then
    exec {lock}>&-
    return 0
  fi
  # Nothing that is added starts a service: the root has this machine's network.
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod 755 "$root/usr/sbin/policy-rc.d"
  [[ ! -e $unfinished ]] || install_added --fix-broken # what an interrupted one left
  : >"$unfinished"
  install_added "${wanted[@]}"
  rm -f "$unfinished"
  exec {lock}>&-
}

# Runs inside the private mount namespace. The new / is a tmpfs with the root's folders bound into it, so that mount points
# are never made in the root itself: graft makes the folders on the way to each of `places` anew and binds their neighbours.
graft() {
  local from=$root$1 to=$stage$1 child place way=''
  case $1 in /proc | /sys | /dev | /tmp | /run | /root | /home) mkdir "$to" && return ;; esac
  while IFS= read -r place; do [[ $place/ != "$1"/* || $place == "$1" ]] || way=1; done <<<"$places"
  if [[ -L $from ]]; then
    cp -P "$from" "$to"
  elif [[ ! -d $from ]]; then
    : >"$to" && mount --bind "$from" "$to"
  elif [[ $1 && ! $way ]]; then
    mkdir "$to" && mount --bind "$from" "$to"
  else
    mkdir -p "$to"
    for child in "$from"/* "$from"/.[!.]*; do
      [[ ! -e $child && ! -L $child ]] || graft "$1/${child##*/}"
    done
  fi
}

# Binds a file or folder of this machine at its own path.
show_place() {
  if [[ -d $1 ]]; then
    mkdir -p "$stage$1"
  else
    mkdir -p "$stage${1%/*}" && : >>"$stage$1"
  fi
  mount --rbind "$1" "$stage$1"
}

# enter USER COMMAND...: USER is UID:GID to become, or empty.
enter() {
  local user=$1 folder place
  mount -t tmpfs -o mode=755 kiln "$stage"
  graft ''
  for folder in proc sys dev; do mount --rbind "/$folder" "$stage/$folder"; done
  mkdir -p "$stage/ccache"
  chmod 1777 "$stage/tmp"
  [[ ! $user ]] || chown "$user" "$stage/root"
  while IFS= read -r place; do show_place "$place"; done <<<"$places"
  mount --rbind "$ccache" "$stage/ccache"
  exec chroot ${user:+"--userspec=$user"} "$stage" /usr/bin/env -i -C "$folder_inside" "${@:2}"
}

# Adds to `places` what a command of the caller's needs to see beside the tree: the current folder, and the files and folders that
# its arguments name (PATH, --option=PATH), or the folder that shall hold a new file. The system's own folders stay the root's.
add_places() {
  local word place
  for word in "$PWD" "$@"; do
    [[ $word && ${word#-*=} ]] || continue
    place=$(realpath -ms -- "${word#-*=}")
    [[ $word == */* || -e $word ]] || continue
    [[ -e $place ]] || place=${place%/*}
    case $place/ in / | // | /proc/* | /sys/* | /dev/* | /usr/* | /etc/* | /bin/* | /sbin/* | /lib/* | /lib64/*) continue ;; esac
    [[ ! -e $place || $place/ == "$tree"/* ]] || places+=$'\n'$place
  done
  places=$(sort -u <<<"$places") # a folder comes before what lies in it
}

# Runs [VARIABLE=VALUE]... COMMAND... in the root, in the current folder if that is one of `places` or inside the tree.
inside_root() {
  local user='' ccache name folder_inside=$tree
  local variables=(HOME=/root LANG=C.UTF-8 CCACHE_DIR=/ccache CCACHE_BASEDIR="$tree" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CMAKE_CXX_COMPILER_LAUNCHER=ccache)
  [[ $PWD/ != "$tree"/* && $'\n'$places$'\n' != *$'\n'$PWD$'\n'* ]] || folder_inside=$PWD
  for name in $(compgen -e); do
    [[ ! $name =~ ^(KILN_.*|AMD_.*|HIP_.*|ROCR_.*|CTEST_.*|[A-Z]*SAN_OPTIONS|NO_COLOR|CLICOLOR_FORCE|TERM|CI)$ ]] || variables+=("$name=${!name}")
  done
  # Root in somebody else's tree works as that somebody, so that no file there changes its owner.
  [[ $(id -u) != 0 || $(stat -c %u "$tree") == 0 || ${as_root:-} ]] || user=$(stat -c %u:%g "$tree")
  ccache=$cache/ccache-${user%:*}
  [[ $user ]] || ccache=$cache/ccache
  [[ -d $ccache ]] || { mkdir -p "$ccache" && chown "${user:-$(id -u)}" "$ccache"; }
  export root stage="$cache/stage" places ccache folder_inside
  $last "${namespace[@]}" bash -euc "$(declare -f graft show_place enter); enter \"\$@\"" enter "$user" "${variables[@]}" "$@"
}

# shellcheck shell=bash
# The Debian root of ./dev: built once from the host's own mirror, kept in the user's cache, entered in a private mount namespace.
# Read by ./dev, whose say, die and condense it uses, and whose variables tree, cache, suite, lacks and last. How its files are fetched
# is in debian_bootstrap.sh.

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
torch_packages=(python3-torch libtorch-dev python3-dev) # the headers are for inductor

# Builds the root under another name beside it and renames it when it is complete. The caller holds the lock.
build_root() {
  local partial=$root.partial hint=''
  log=$root.log
  : >"$log"
  need_mmdebstrap
  find_mirror
  (($(df --output=avail -k "$cache" | tail -n 1) > 4000000)) || die "$cache has less than 4 GB free for the environment" 'free some, or set XDG_CACHE_HOME'
  say "building the environment, once: Debian $suite from ${mirror:-the archive that mmdebstrap knows}, into $root"
  if ! bootstrap_apart "$partial" && ! { grep -q NO_PUBKEY "$log" && renew_keyring && bootstrap_apart "$partial"; }; then
    remove_tree "$partial"
    [[ ${namespace[*]} != *--user* ]] || hint="without root, mmdebstrap needs a range of ids for $(id -un) in /etc/subuid and /etc/subgid, and the package uidmap"
    grep -q NO_PUBKEY "$log" && hint+="${hint:+; }the keyring $keyring lacks the key that the archive is signed with: export KILN_DEV_KEYRING=/path/to/a/newer/debian-archive-keyring.gpg"
    die "the environment could not be built from suite $suite of ${mirror:-the archive that mmdebstrap knows}; the whole log is $log" "$(grep -E '^(E|W): ' "$log" | grep -vE 'mmdebstrap failed|command failed|^E: apt-get|old ones used' | tail -n 12)" \
      ${hint:+"$hint"} 'another mirror: export KILN_DEV_MIRROR=http://host/debian' 'another suite: ./dev --suite SUITE' "this machine's own ROCm and LLVM serve as well: $(build_packages_line)"
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
    "root with CAP_SYS_ADMIN: sudo ./dev ${command:-demo} (in a container: --privileged, or --cap-add SYS_ADMIN), or" \
    'unprivileged user namespaces (sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, as Ubuntu 24.04 needs it; user.max_user_namespaces), or' \
    "your own ROCm 6.2 or newer with LLVM 20 to 22 (here: $lacks)" ${remedy:+"$remedy"}
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

# Adds HIP's run time where there is a GPU: the one that belongs to the root's hipRTC. It brings ROCr and libdrm.
add_gpu_runtime() {
  local hiprtc
  has_gpu || return 0
  hiprtc=$(compgen -G "$root/usr/lib/*/libhiprtc.so.[67]" | head -n 1)
  (add_packages "libamdhip64-${hiprtc##*.}") || say "without HIP's run time the environment cannot use the GPU; what needs none goes on"
}

# One line: whether programs of the environment reach a GPU, and through what.
describe_gpu() {
  local archs hip=''
  has_gpu || { echo 'no GPU (there is no /dev/kfd): kernels run on the CPU model, --device emulated:gfx942' && return; }
  archs=$(gpu_archs | paste -sd,)
  # shellcheck disable=SC2016 # for the shell inside
  inside bash -c '[[ -r /dev/kfd && -w /dev/kfd ]]' || { echo "GPU ${archs:-unknown}, and this user may not open /dev/kfd: sudo usermod -a -G render,video $(id -un), then log in anew" && return; }
  if [[ ${KILN_HIP_PATH:-} ]]; then
    hip="$KILN_HIP_PATH (KILN_HIP_PATH)"
  elif [[ $suite == host ]]; then
    hip=$(host_library 'libamdhip64.so.[67]')
  else
    hip=$(compgen -G "$root/usr/lib/*/libamdhip64.so.[67]" | head -n 1)
    [[ ! $hip ]] || hip="$(basename "$(readlink -f "$hip")") of Debian $suite"
  fi
  echo "GPU ${archs:-unknown} through ${hip:-nothing: no libamdhip64 was found}; kiln doctor says more"
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
  command -v apt-get >/dev/null || die "adding ${wanted[*]} ${optional[*]} to the environment needs apt-get on this machine" "a Debian container has it: $(container_line)"
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

# enter USER COMMAND...: USER is UID:GID to become, or empty. Who becomes it keeps the groups of the GPU's nodes.
enter() {
  local user=$1 folder place
  mount -t tmpfs -o mode=755 kiln "$stage"
  graft ''
  for folder in proc sys dev; do mount --rbind "/$folder" "$stage/$folder"; done
  mkdir -p "$stage/ccache"
  chmod 1777 "$stage/tmp"
  [[ ! $user ]] || chown "$user" "$stage/root"
  while IFS= read -r place; do show_place "$place"; done <<<"$places"
  while IFS= read -r place; do
    [[ ! $place ]] || { show_place "$place" && mount -o remount,ro,bind "$stage$place"; }
  done <<<"$readonly_places"
  mount --rbind "$ccache" "$stage/ccache"
  [[ ! $kernels ]] || { mkdir -p "$stage/kernels" && mount --rbind "$kernels" "$stage/kernels"; }
  exec chroot ${user:+"--userspec=$user"} ${user:+${groups:+"--groups=$groups"}} "$stage" /usr/bin/env -i -C "$folder_inside" "${@:2}"
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
  local user='' ccache name library readonly_places='' groups kernels folder_inside=$tree
  local variables=(HOME=/root LANG=C.UTF-8 CCACHE_DIR=/ccache CCACHE_BASEDIR="$tree" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_GENERATOR=Ninja)
  [[ $PWD/ != "$tree"/* && $'\n'$places$'\n' != *$'\n'$PWD$'\n'* ]] || folder_inside=$PWD
  for name in $(compgen -e); do
    [[ ! $name =~ ^(KILN_.*|AMD_.*|HIP_.*|HSA_.*|ROCR_.*|GPU_.*|CTEST_.*|[A-Z]*SAN_OPTIONS|NO_COLOR|CLICOLOR_FORCE|TERM|CI)$ ]] || variables+=("$name=${!name}")
  done
  # Libraries of this machine's ROCm that the caller names are seen as they are: its folder read-only, by the file behind the links.
  for name in KILN_HIP_PATH KILN_HIPRTC_PATH KILN_COMGR_PATH; do
    library=$(readlink -e "${!name:-}") && [[ $library/ != "$tree"/* && $library != /usr/* ]] || continue
    readonly_places+=${readonly_places:+$'\n'}${library%/lib*/*}
    variables+=("$name=$library")
  done
  # Root in somebody else's tree works as that somebody, so that no file there changes its owner.
  [[ $(id -u) != 0 || $(stat -c %u "$tree") == 0 || ${as_root:-} ]] || user=$(stat -c %u:%g "$tree")
  ccache=$cache/ccache-${user%:*}
  [[ $user ]] || ccache=$cache/ccache
  [[ -d $ccache ]] || { mkdir -p "$ccache" && chown "${user:-$(id -u)}" "$ccache"; }
  # Programs that the user runs find the kernels of the run before. Tests have a cache of their own.
  kernels=''
  if [[ ${command:-} =~ ^(exec|shell)$ && ! ${KILN_CACHE_DIR:-} ]]; then
    kernels=$cache/kernels-${user%:*}
    [[ $user ]] || kernels=$cache/kernels
    [[ -d $kernels ]] || { mkdir -m 700 "$kernels" && chown "${user:-$(id -u)}" "$kernels"; }
    variables+=(KILN_CACHE_DIR=/kernels)
  fi
  groups=$(gpu_groups)
  export root stage="$cache/stage" places readonly_places groups ccache kernels folder_inside
  $last "${namespace[@]}" bash -euc "$(declare -f graft show_place enter); enter \"\$@\"" enter "$user" "${variables[@]}" "$@"
}

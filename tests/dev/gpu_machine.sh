#!/usr/bin/env bash
# Runs a command as a machine with a GPU would: /dev/kfd, /dev/dri and the driver's topology are plain files, in a mount namespace that goes
# with the command. There is no driver behind them, so HIP finds no device. Needs root: no part of ctest.
# usage: gpu_machine.sh ARCH_VERSION COMMAND...   (90402 is gfx942, 90500 gfx950); e.g. gpu_machine.sh 90402 ./dev exec kiln doctor
set -euo pipefail

[[ $# -gt 1 ]] || { sed -n 's/^# usage: //p' "$0" && exit 2; }
[[ ${KILN_GPU_MACHINE:-} ]] || KILN_GPU_MACHINE=1 exec unshare --mount --propagation private "$0" "$@"
version=$1
shift
fake=$(mktemp -d)
mount -t tmpfs gpu "$fake"
mkdir -p "$fake/dev/dri" "$fake/class/kfd/kfd/topology/nodes/1" "$fake/class/drm"
for name in null zero full random urandom tty; do
  [[ ! -e /dev/$name ]] || { : >"$fake/dev/$name" && mount --bind "/dev/$name" "$fake/dev/$name"; }
done
for name in pts shm; do mkdir "$fake/dev/$name" && mount --rbind "/dev/$name" "$fake/dev/$name"; done
ln -s pts/ptmx "$fake/dev/ptmx" # the node itself looks for pts beside it on devtmpfs
ln -s /proc/self/fd "$fake/dev/fd"
for name in kfd dri/renderD128 dri/card0; do install -m 660 /dev/null "$fake/dev/$name"; done
chgrp 105 "$fake/dev/kfd" "$fake/dev/dri/renderD128" # render
chgrp 44 "$fake/dev/dri/card0"                       # video
printf 'simd_count 1216\ngfx_target_version %s\n' "$version" >"$fake/class/kfd/kfd/topology/nodes/1/properties"
mount --rbind "$fake/dev" /dev
mount --rbind "$fake/class" /sys/class
unset KILN_GPU_MACHINE
exec "$@"

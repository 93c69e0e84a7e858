#!/usr/bin/env bash
# Runs the numeric tests with every kernel also launched on the device that KILN_TEST_DEVICE names (`./dev test --device hip:0`). Exit code 77,
# which ctest calls skipped, when none is named or there is none. usage: on_device.sh KILN TESTS [ARGUMENTS]
set -euo pipefail
kiln=$1 tests=$2
shift 2
[[ ${KILN_TEST_DEVICE:-} ]] || { echo 'KILN_TEST_DEVICE names no device: ./dev test --device hip:0' && exit 77; }
status=0
"$kiln" run rmsnorm --cols 64 --rows 1 --device "$KILN_TEST_DEVICE" || status=$?
[[ $status != 2 ]] || exit 77 # the reason was said
[[ $status == 0 ]] || echo "$KILN_TEST_DEVICE gives wrong results already for one norm; the tests say more"
exec "$tests" "$@"

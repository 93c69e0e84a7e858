#!/usr/bin/env bash
# Runs the Python tests, or says what is missing for them and ends with 77, which ctest takes as skipped.
#   run.sh TREE LIBRARY PATTERN [FOLDER]  the tests in tests/FOLDER (python) whose files fit
#   run.sh TREE LIBRARY FILE [ARGS]       a program
set -euo pipefail
tree=$1 pattern=$3 folder=${4:-python}
command -v python3 >/dev/null || { echo 'skipped: there is no python3; ./dev test adds it with python3-numpy' && exit 77; }
python3 -c 'import numpy' 2>/dev/null || { echo 'skipped: python3 has no numpy; ./dev test adds it, or install python3-numpy' && exit 77; }
if [[ $pattern == *torch* ]] && ! python3 -c 'import torch' 2>/dev/null; then
  echo 'skipped: python3 has no torch; ./dev --with torch test adds it, or install python3-torch'
  exit 77
fi
if [[ $folder == tvm_ffi ]] && ! python3 -c 'import tvm_ffi' 2>/dev/null; then
  echo 'skipped: python3 has no tvm_ffi; ./dev test adds it, or install python3-tvm-ffi'
  exit 77
fi
export KILN_C_LIBRARY=$2 PYTHONPATH=$tree/python PYTHONDONTWRITEBYTECODE=1
[[ ! -f $tree/$pattern ]] || exec python3 -W error "$tree/$pattern" "${@:4}"
exec python3 -W error -m unittest discover --start-directory "$tree/tests/$folder" --top-level-directory "$tree/tests/$folder" --pattern "$pattern"

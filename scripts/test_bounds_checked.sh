#!/usr/bin/env bash
# The test suite with every index of compiled code checked: one outside its array is an IndexError, not a silent read or write.
# It takes much longer than without. Arguments go to pytest: scripts/test_bounds_checked.sh tests/solvers/test_kernel_solvers.py
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/venv.sh

make_venv .venv-test -e '.[dev]'
export NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$PWD/.venv-test/numba-bounds-checked
.venv-test/bin/pytest --numprocesses auto --dist worksteal --timeout 3600 "$@"

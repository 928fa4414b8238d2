#!/usr/bin/env bash
# Everything that has to hold: lint, types, the test suite, and the wheel in an environment of its own.
# Needs Python ≥ 3.11 and a package index, nothing else; takes all cores. Arguments go to pytest: scripts/test.sh -k manifest
# scripts/test.sh --smoke runs instead, in a minute once kernels are compiled, the tests that are marked so: bits of small
# trainings, bounds, storage and resuming, bad input, the command line, imports. Other marks stand in pyproject.toml.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/venv.sh
unset PYTHONDONTWRITEBYTECODE  # hundreds of processes start below

# One process more than processors: tests wait for servers, clusters and children that compile, a quarter of the time.
spread=(--numprocesses $(($(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal)

if [ "${1:-}" = --smoke ]; then
    shift
    make_venv .venv-test -e '.[dev]'
    exec .venv-test/bin/pytest "${spread[@]}" -m smoke "$@"
fi

step() { printf '\n== %s (after %s s)\n' "$*" "$SECONDS"; }

check_wheels() {  # each step's output appears when all are done
    step "the wheel in a clean environment"
    make_venv .venv-wheel dist/*-none-any.whl
    install dist/*-none-any.whl
    bash scripts/smoke.sh .venv-wheel/bin

    step "the wheel with machine code: nothing is compiled"
    .venv-wheel/bin/python -P scripts/tools/build_wheel.py dist/*-none-any.whl --into dist --kinds 1 --workers 2
    install dist/*-cp*.whl
    .venv-wheel/bin/python -P scripts/tools/build_wheel.py --check
}

install() { .venv-wheel/bin/python -m pip install -qq --disable-pip-version-check --force-reinstall --no-deps "$@"; }

step "source archive and wheel"
make_venv .venv-build build
rm -rf dist
.venv-build/bin/python -m build --outdir dist >.venv-build/log 2>&1 || { tail -n 30 .venv-build/log; exit 1; }
ls dist

# Installing takes one processor, and so do the wheels' commands.
(set -euo pipefail && check_wheels) >.venv-build/log 2>&1 &
wheels=$!

make_venv .venv-test -e '.[dev]'
bin=$PWD/.venv-test/bin

step ruff
"$bin/ruff" check

step mypy
MYPY=$bin/mypy scripts/typecheck.sh

step "the site"
PYTHON=$bin/python bash scripts/tools/build_site.sh

wait $wheels || { cat .venv-build/log; exit 1; }
cat .venv-build/log

step pytest
STREAMCUT_KERNELS=$(echo "$PWD"/.venv-wheel/lib/python*/site-packages/streamcut/_kernels)
export STREAMCUT_KERNELS  # the plain trainings' kernels are there, compiled already
"$bin/pytest" "${spread[@]}" --durations 25 "$@"

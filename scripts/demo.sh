#!/usr/bin/env bash
# From nothing to a certified model in a few commands, on real data that scikit-learn ships. Everything goes into demo/.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/venv.sh

make_venv .venv-demo -e .
bin=$PWD/.venv-demo/bin
rm -rf demo
mkdir demo
cd demo

run() {  # show a command, then run it
    printf '\n$ %s\n' "$*"
    "$bin/$1" "${@:2}"
}

run streamcut example tumours train.svm
run streamcut example tumours-test test.svm
run streamcut convert train.svm train.zarr
run streamcut info train.zarr
run streamcut train train.zarr -o m.npz --memory 1GB
run streamcut verify m.npz train.zarr
run streamcut convert test.svm test.zarr --n-features 30
run streamcut evaluate m.npz test.zarr
printf '\n$ streamcut predict m.npz test.zarr | head -n 3\n'
"$bin/streamcut" predict m.npz test.zarr >labels.txt
head -n 3 labels.txt
printf '\nAll of it is in %s.\n' "$PWD"

#!/usr/bin/env bash
# smoke.sh BIN: does the installed package in BIN (a venv's bin folder) work at all, away from the source tree?
set -euo pipefail
bin=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$bin/python" -c 'import streamcut, streamcut.io; assert "site-packages" in streamcut.io.__file__, streamcut.io.__file__'
"$bin/streamcut" --help >/dev/null
for row in $(seq 200); do
    echo "+1 $((row % 7 + 1)):1 10:0.5"
    echo "-1 $((row % 5 + 4)):1 11:0.5"
done >train.svm
"$bin/streamcut" convert train.svm train.zarr
"$bin/streamcut" train train.zarr -o m.npz
"$bin/streamcut" verify m.npz train.zarr
"$bin/streamcut" predict m.npz train.zarr >labels.txt
test "$(wc -l <labels.txt)" -eq 400

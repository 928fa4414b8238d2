#!/usr/bin/env bash
# mypy over the package. It knows nothing of setuptools' mapping of io/ to streamcut.io, hence a farm of links in .typing/.
# MYPY names the mypy to run; default: the one on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf .typing/streamcut
mkdir -p .typing/streamcut
for entry in streamcut/*; do
    ln -s "../../$entry" .typing/streamcut/
done
ln -s ../../io .typing/streamcut/io
mypy=$(realpath --no-symlinks "$(command -v "${MYPY:-mypy}")")
cd .typing
"$mypy" --config-file ../pyproject.toml -p streamcut

"""What starting costs: the modules that commands load, and what a shell asks for while one types."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("streamcut cali", "calibrate"),
        ("streamcut train --max-pa", "--max-passes"),
        ("streamcut train x --solver b", "bundle-dca bsca bsgd"),
    ],
)
def test_bash_completes_commands_options_and_values(words, answer, tmp_path):
    program = tmp_path / "streamcut"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m streamcut "$@"\n')
    program.chmod(0o755)
    asked = (
        'eval "$(_STREAMCUT_COMPLETE=bash_source streamcut)"; complete -p streamcut > /dev/null || exit 1; '
        f'COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}; _streamcut_completion streamcut; echo "${{COMPREPLY[@]}}"'
    )
    known = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", asked], env=known, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == answer, done.stderr

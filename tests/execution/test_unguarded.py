"""A script that trains on local-cluster outside `if __name__ == "__main__":` is told so: each process that it starts runs it."""

import subprocess
import sys

import numpy as np
import pytest

import streamcut

pytestmark = pytest.mark.process

SCRIPT = """
import sys
import streamcut
streamcut.train(sys.argv[1], scheduler="local-cluster", workers=1, max_passes=1)
"""


def test_a_script_without_the_guard_is_told_of_it(tmp_path):
    rng = np.random.default_rng(0)
    with streamcut.create(tmp_path / "rows.zarr") as out:
        out.append(rng.normal(size=(40, 3)), np.resize([-1.0, 1.0], 40))
    (tmp_path / "script.py").write_text(SCRIPT)
    words = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "rows.zarr")]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("streamcut.errors.UsageError: scheduler: local-cluster: its processes did not start")
    assert 'put the script\'s code below if __name__ == "__main__":' in last

"""`convert` by the workers of a Dask cluster: the same bytes as on one machine, whatever the files are."""

from __future__ import annotations

import subprocess
import sys

import kit.shared.cluster_convert
import pytest

files = kit.shared.cluster_convert.files


pytestmark = pytest.mark.cluster


def test_wrong_text_is_told_in_a_sentence(files, tmp_path):
    (tmp_path / "in").mkdir()
    for k in range(3):
        (tmp_path / f"in/{k}.svm").write_text("1 1:0.5\n" * 50 + ("1 1:x\n" if k == 1 else ""))
    words = ["convert", "in/*.svm", "out.zarr", "--scheduler", "local-cluster", "-q"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "streamcut", *words], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 3, done.stderr
    assert "1.svm:51" in done.stderr
    assert "Traceback" not in done.stderr

"""The peak memory of a conversion stays below --memory, whatever the size of the data and of its lines, and in every order."""

import subprocess
import sys

import numpy as np
import pytest
from kit.shared.memory import within

pytestmark = pytest.mark.process

BUDGET = 330 * 10**6
SCRIPT = """
import sys
import streamcut
options = {"shuffle": 1, "split": 0.9, "backend": "hdf5"} if sys.argv[1].startswith("usual") else {}
streamcut.convert(sys.argv[1], "a.zarr", memory=int(sys.argv[2]), force=True, **options)
print([int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""


def usual() -> bytes:
    rng = np.random.default_rng(0)
    rows = [np.unique(rng.integers(1, 10**6, 15)) for _ in range(5000)]
    return b"".join(b"%d " % (j[0] % 2) + b" ".join(b"%d:%.4g" % (i, i / 1e5) for i in j) + b"\n" for j in rows)


@pytest.mark.parametrize("name", ["usual", "long lines"])
def test_peak_memory_stays_below_the_limit(tmp_path, name):
    """Of text that is almost three times as large as the budget leaves for the work, and of lines of half a megabyte."""
    piece, size = (usual(), 200) if name == "usual" else (b"1 " + b" ".join(b"%d:1" % j for j in range(1, 60_000)) + b"\n", 60)
    with open(tmp_path / f"{name}.svm", "wb") as file:
        for _ in range(size * 10**6 // len(piece)):
            file.write(piece)
    command = [sys.executable, "-P", "-c", SCRIPT, f"{name}.svm", str(BUDGET)]

    def peak() -> int:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert within(BUDGET, peak, int) <= BUDGET

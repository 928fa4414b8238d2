"""The peak memory of a conversion stays below --memory, whatever the size of the data and of its lines, and in every order."""

import json
import subprocess
import sys

import numpy as np
import pytest
from kit.first_runs import within

pytestmark = pytest.mark.process

BUDGET = 330 * 10**6
SCRIPT = """
import json, sys
from streamcut.io.conversion.convert import convert
convert(sys.argv[1], sys.argv[2], memory=int(sys.argv[3]), force=True, **json.loads(sys.argv[4]))
print([int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""


def peak(source, output, options) -> int:
    """VmHWM in bytes of a fresh process that converts `source`."""
    command = [sys.executable, "-P", "-c", SCRIPT, str(source), str(output), str(BUDGET), json.dumps(options)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    return int(found.stdout)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """{name: file}; the first is four times as large as the budget leaves for the work."""
    folder = tmp_path_factory.mktemp("text")
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(5000):
        entries = np.unique(rng.integers(1, 10**6, 15))
        lines.append(
            f"{rng.integers(0, 2)} " + " ".join(f"{j}:{v:.4g}" for j, v in zip(entries, rng.normal(size=15), strict=False)) + "\n"
        )
    block = "".join(lines).encode()
    contents = {
        "usual": (block, 300 * 10**6),
        "labels only": (b"1\n" * 500_000, 30 * 10**6),
        "long lines": (b"1 " + b" ".join(b"%d:1" % j for j in range(1, 60_000)) + b"\n", 60 * 10**6),
    }
    files = {}
    for name, (piece, size) in contents.items():
        files[name] = folder / f"{name}.svm"
        with open(files[name], "wb") as file:
            for _ in range(size // len(piece)):
                file.write(piece)
    return files


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("usual", {"shuffle": 1, "split": 0.9, "backend": "hdf5"}),
        ("long lines", {}),
    ],
)
def test_peak_memory_stays_below_the_limit(texts, tmp_path, name, options):
    used = within(BUDGET, lambda: peak(texts[name], tmp_path / "a.zarr", options), int)
    assert used <= BUDGET, f"{used / 1e6:.0f} MB"
    print(f"{name} {options}: {used / 1e6:.0f} MB")

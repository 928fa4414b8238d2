"""macOS, as far as Linux can play it: what it lacks is taken away, and everything is done once without it.

What is taken away is listed here by hand from the documentation of Python; that the rest behaves as here only macOS shows.
"""

from __future__ import annotations

import subprocess
import sys

PLAYED = """
import sys
import numba, numpy, numcodecs.blosc, psutil, click, tempfile, subprocess, threading, multiprocessing.pool, shutil, asyncio
import errno, mmap, os, pathlib, signal, threadpoolctl, types

UNIX_ONLY = {
    os: "sched_getaffinity process_cpu_count posix_fadvise posix_fallocate memfd_create uname".split(),
}
for module, names in UNIX_ONLY.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
libraries = threadpoolctl.ThreadpoolController()  # it would look for those of the other system
threadpoolctl.ThreadpoolController = lambda: libraries
sys.platform = "darwin"
import resource
resource.getrusage = lambda who, old=resource.getrusage: types.SimpleNamespace(ru_maxrss=old(who).ru_maxrss * 1024)
read = pathlib.Path.read_text
pathlib.Path.read_text = lambda path, *more, **named: sys.exit(path) if "/proc" in str(path) else read(path, *more, **named)
"""
WORK = """
import streamcut
from streamcut.foundation import systems
systems._cgroup_limits = lambda *paths: iter(())
assert not systems.LINUX, sys.platform
from streamcut.cli import main
def run(*command):
    try:
        main(list(command))
    except SystemExit as ended:
        assert ended.code == 0, (command, ended.code)
run("convert", "a.svm", "a.zarr", "--shuffle", "1")
run("convert", "a.svm", "a.zarr", "--force", "--quiet")
run("info", "a.zarr", "--check")
many = ("--checkpoint", "c", "--checkpoint-every", "0s", "--tol", "1e-9")
run("train", "a.zarr", "--output", "m.npz", *many, "--max-passes", "2")
assert pathlib.Path("c").exists()
run("train", "a.zarr", "--output", "m.npz", *many, "--resume", "--force", "--memory", "50%", "--quiet")
run("train", "a.zarr", "--output", "m.npz", "--force", "--quiet")
run("predict", "m.npz", "a.svm", "-o", "y.txt")
run("verify", "m.npz", "a.zarr")
assert systems.peak_bytes() >= systems.resident_bytes() > 10_000_000 and systems.cpus() > 0
assert "psutil" in sys.modules
from streamcut.execution.row_state import RowState
state = RowState(1 << 20, pathlib.Path("."))
state.add("z")
state.arrays["z"][:] = 1.0
state.release(0, 1 << 20)
assert state.arrays["z"].sum() == 1 << 20
from streamcut.errors import LockedError
from streamcut.foundation.files import locked, write_durably
with locked("l", "it"):
    try:
        with locked("l", "it"):
            raise AssertionError("no lock")
    except LockedError:
        pass
for text in (b"one\\r\\n", b"two\\r\\n"):
    write_durably("m.txt", [text])
assert pathlib.Path("m.txt").read_bytes() == text
assert systems.alive(os.getpid()) and not systems.alive(2**22 + 1)
"""


def test_all_goes_without_what_only_linux_has(tmp_path):
    (tmp_path / "a.svm").write_text("".join(f"{1 if row % 7 > 3 else -1} {row % 7 + 1}:0.5 9:1\n" for row in range(400)))
    code = PLAYED + WORK
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["a.svm", "a.zarr", "l", "m.npz", "m.txt", "y.txt"], "no temporary file, and no lock of an output"

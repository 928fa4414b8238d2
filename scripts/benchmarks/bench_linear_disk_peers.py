"""Peers and processes of bench_linear_disk.py: Vowpal Wabbit, memory groups, files out of the page cache."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from make_data_kernels import format_rows

VW_KINDS = {"vw": [], "vw --sgd": ["--sgd"]}
_VW_OPTIONS = ["--noconstant", "--holdout_off", "--quiet"]
LOSSES = {"hinge": lambda z: np.maximum(0.0, 1.0 - z), "logistic": lambda z: np.logaddexp(0.0, -z)}


def drop(files: list[Path]) -> None:
    """Take `files` out of the page cache (no root needed)."""
    for path in files:
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)  # pages that are not on disk yet cannot be dropped
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


class VowpalWabbit:
    """--l2 1/(C n) a row, from a cache file that is made before. `folder` is for its files.

    Its default steps are scaled for each feature, but their shrinking by l2 is not: they end off the optimum (measured 0.7 %
    above it and more, growing with the passes). With --sgd they head for it, slowly. So both are run.
    Features keep their numbers (1-based, the bias last), which its hash leaves as they are. Its start, 0.1 s, counts.
    """

    def __init__(self, folder: Path, n: int, d: int, loss: str = "hinge") -> None:
        self._options = ["--loss_function", loss, *_VW_OPTIONS]
        self.cache = folder / "rows.cache"
        self._folder = folder
        self._rows, self._features = n, d
        self._bits = int(d + 2).bit_length()

    def convert(self, lines: Iterator[bytes]) -> None:
        """Its cache file of rows in its own text format (see `vw_lines`)."""
        options = ["-d", "/dev/stdin", "--cache_file", str(self.cache), "-k", "-b", str(self._bits), *self._options]
        with subprocess.Popen([*_VW, *options], stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            for piece in lines:
                process.stdin.write(piece)
        if process.returncode or not self.cache.exists():
            raise SystemExit(f"vowpalwabbit ended with {process.returncode}")

    def run(self, kind: str, C: float, passes: int, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> VowpalRun:
        """At most so many passes and seconds by the clock; a model is kept after each."""
        models = self._folder / "models"
        shutil.rmtree(models, ignore_errors=True)
        models.mkdir()
        options = ["--cache_file", str(self.cache), "-b", str(self._bits), "--passes", str(passes), *self._options]
        options += ["--l2", repr(1.0 / (C * self._rows)), "--save_per_pass", "-f", str(models / "m"), *VW_KINDS[kind]]
        started = time.time()
        peaks: list[int] = []
        usage = finished([*_VW, *options], seconds, meanwhile, peaks=peaks)
        wall = time.time() - started
        saved = {int(path.suffix[1:]): path for path in models.glob("m.*") if path.suffix[1:].isdigit()}
        when = {number: path.stat().st_mtime - started for number, path in saved.items()}
        return VowpalRun(usage, max(peaks, default=0), wall, saved, when)

    def weights(self, model: Path) -> np.ndarray:
        """(d + 1) of a model that was kept."""
        text = self._folder / "weights.txt"
        options = ["-d", "/dev/null", "-t", "--quiet", "-i", str(model), "--readable_model", str(text)]
        subprocess.run([*_VW, *options], check=True)
        pairs = re.findall(r"^(\d+):(\S+)$", text.read_text(), re.MULTILINE)
        w = np.zeros(self._features + 2)
        w[[int(number) for number, _ in pairs]] = [float(value) for _, value in pairs]
        return w[1:]


_VW = [sys.executable, "-m", "vowpalwabbit"]


@dataclass(frozen=True)
class VowpalRun:
    """Resources of the process and its most memory, seconds by the clock, and the model after each pass with the seconds until
    then."""

    usage: object
    peak: int
    wall: float
    saved: dict[int, Path]
    when: dict[int, float]


class OutOfMemoryError(Exception):
    """The memory group killed a process."""


_prefix: list[str] = []  # what `finished` puts before every command


@contextmanager
def memory_group(size: int) -> Iterator[None]:
    """Within, what `finished` starts runs in a memory cgroup of `size` bytes, page cache included. Needs root on Linux."""
    root = Path("/sys/fs/cgroup")
    old = (root / "memory").is_dir()  # version 1
    group = (root / "memory" if old else root) / f"streamcut-{os.getpid()}"
    group.mkdir()
    (group / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(size))
    _prefix[:] = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    try:
        yield
    finally:
        _prefix.clear()
        for _ in range(100):  # a killed process leaves a moment later
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


def finished(
    command: list[str], seconds: float, meanwhile: Callable[[], None] = lambda: None, every: float = 0.5,
    peaks: list[int] | None = None,
):  # fmt: skip
    """Run `command` for at most so many seconds by the clock; returns its resource usage. `meanwhile` is called now and then;
    `peaks` gets the most memory that the process has had by then (what the usage says is no less than ours)."""
    process = subprocess.Popen([*_prefix, *command], stdout=subprocess.DEVNULL)
    deadline, next_call, stopped = time.monotonic() + seconds, time.monotonic() + every, False
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() > next_call:
            meanwhile()
            next_call += every
            if peaks is not None:
                peaks += [
                    1024 * int(size) for size in re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
                ]
        if time.monotonic() > deadline and not stopped:
            process.terminate()
            stopped = True
        time.sleep(0.005)
    if _prefix and process.returncode == -signal.SIGKILL:
        raise OutOfMemoryError
    if process.returncode and not stopped:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return usage


def vw_lines(chunks: Iterator, n_features: int) -> Iterator[bytes]:
    """Chunks with labels ±1 as Vowpal Wabbit's text, values with six decimals, the bias as feature `n_features` + 1."""
    none = np.empty(0, np.int64)
    for chunk in chunks:
        room = np.empty(20 * chunk.nnz + 40 * chunk.n_rows, np.uint8)
        largest = 1.0 if chunk.data is None else float(np.abs(chunk.data).max(initial=0.0))
        if chunk.data is None or (largest <= 1.0 and chunk.data.min(initial=0.0) >= 0.0):
            data = none if chunk.data is None else chunk.data
            text = room[: format_rows(chunk.indptr, chunk.indices, data, chunk.y, True, none, room)].tobytes()
        else:  # values that the fast kernel cannot write
            text = "".join(_line(chunk, i) for i in range(chunk.n_rows)).encode()
        for label in (b"+1", b"-1"):
            text = text.replace(b"\n" + label, b" %d:1\n%s |" % (n_features + 1, label))
        yield text[:2] + b" |" + text[2:-1] + b" %d:1\n" % (n_features + 1)


def _line(chunk, i: int) -> str:
    start, stop = chunk.indptr[i], chunk.indptr[i + 1]
    pairs = zip(chunk.indices[start:stop], chunk.data[start:stop], strict=True)
    return f"{chunk.y[i]:+g} " + " ".join(f"{j + 1}:{value:.6g}" for j, value in pairs) + "\n"

"""What benchmarks compare: tools that minimise ½‖w‖² + C Σ ℓ(y⟨w, x⟩), w with a regularised bias, in their ways.

Each gives a list of Points; seconds are processor time of its own work alone, on one thread (Vowpal Wabbit: of its process), and
those of the clock where streamcut has two threads.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from streamcut.io.memory import MemoryDataset
from streamcut.training import train

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from make_data_kernels import format_rows

EPSILONS = (0.1, 1.0, 0.3, 0.01)  # LIBLINEAR's -e, its default first
VW_KINDS = {"vw": [], "vw --sgd": ["--sgd"]}
_VW_OPTIONS = ["--noconstant", "--holdout_off", "--quiet"]
LOSSES = {"hinge": lambda z: np.maximum(0.0, 1.0 - z), "logistic": lambda z: np.logaddexp(0.0, -z)}
ONE = {"lanes": 1, "scheduler": "sync"}
TWO = {"lanes": None, "workers": 2, "scheduler": "threads"}
SOLVERS = {
    "cpa": {"solver": "cpa"},
    "ocas exact": {"solver": "ocas", "cut": "exact"},
    "ocas predicted": {"solver": "ocas", "cut": "predicted"},
    "bundle-dca 0 %": {"solver": "bundle-dca", "row_cache": "0"},
    "bundle-dca 10 %": {"solver": "bundle-dca", "row_cache": "10%"},
    "bundle-dca 30 %": {"solver": "bundle-dca", "row_cache": "30%"},
    "bundle-dca": {"solver": "bundle-dca"},
    "bundle-dca on two threads": {"solver": "bundle-dca", **TWO},
    "bundle-dca 0 % on two threads": {"solver": "bundle-dca", "row_cache": "0", **TWO},
    "bundle-dca 30 % on two threads": {"solver": "bundle-dca", "row_cache": "30%", **TWO},
}
_BLOCK = 1 << 17  # rows


@dataclass(frozen=True)
class Point:
    """After `passes` over the data: processor seconds, F, and for streamcut its bound and the bytes of all rows gone through."""

    passes: float
    seconds: float
    primal: float
    bound: float | None = None
    bytes_computed: int | None = None


@dataclass(frozen=True)
class Problem:
    """X (n, d) CSR float32, y ±1, loss one of LOSSES."""

    name: str
    X: sp.csr_array
    y: np.ndarray
    C: float
    loss: str = "hinge"

    def objective(self, w: np.ndarray) -> float:
        """F(w) in float64; w (d + 1), the bias last."""
        loss = 0.0
        for start in range(0, len(self.y), _BLOCK):
            rows = slice(start, start + _BLOCK)
            loss += LOSSES[self.loss](self.y[rows] * (self.X[rows] @ w[:-1] + w[-1])).sum()
        return float(0.5 * (w @ w) + self.C * loss)

    def with_bias(self) -> sp.csr_array:
        """X with the constant feature as its last column, 32-bit positions (scikit-learn takes no others)."""
        wide = sp.csr_array(sp.hstack([self.X, np.ones((len(self.y), 1), np.float32)], format="csr"))
        wide.indptr, wide.indices = wide.indptr.astype(np.int32), wide.indices.astype(np.int32)
        return wide


def streamcut(problem: Problem, data: MemoryDataset, solver: str, seconds: float) -> list[Point]:
    """One training to 0.01 % of the optimum: every iteration is a point. F is its own, checked at the end."""
    options = {**ONE, **SOLVERS[solver]}
    now = time.thread_time if options["scheduler"] == "sync" else time.perf_counter
    clock: list[float] = []
    started: list[float] = []
    model = train(
        data,
        C=problem.C,
        tol=None,
        tol_relative=1e-4,
        stop=lambda: now() - started[0] > seconds,
        on_plan=lambda plan: started.append(now()),
        on_iteration=lambda iteration: clock.append(now()),
        **options,
    )
    found, claimed = problem.objective(model.augmented_weights), model.certificate.primal
    if abs(found - claimed) > 1e-9 * found + 1e-11 * model.certificate.c_bar:  # the certificate is rounded up, by parts of C̄
        raise SystemExit(f"{problem.name} {solver}: F is {found!r}, the certificate says {claimed!r}")
    return [
        Point(line["passes"], then - started[0], line["primal"], line["lower_bound"], line["bytes_computed"])
        for line, then in zip(model.history, clock, strict=True)
    ]


class Liblinear:
    """-s 3 -B 1. What is timed is its training alone; its copy of the rows is made before."""

    def __init__(self, problem: Problem) -> None:
        from liblinear import liblinear

        self._library = liblinear
        self._rows = liblinear.problem(problem.y, sp.csr_matrix(problem.X), bias=1)
        self._printed: list[str] = []

    def points(self, problem: Problem, seconds: float, epsilons: Sequence[float] = EPSILONS) -> list[Point]:
        """One training for each of `epsilons`, in that order, none after one that took more than `seconds`."""
        found: list[Point] = []
        for epsilon in epsilons:
            if not found or max(point.seconds for point in found) < seconds:
                found.append(self._point(problem, epsilon))
        return found

    def _point(self, problem: Problem, epsilon: float) -> Point:
        library = self._library.liblinear
        options = self._library.parameter(f"-s 3 -B 1 -c {problem.C!r} -e {epsilon}")
        self._printed.clear()
        options.print_func = self._library.PRINT_STRING_FUN(lambda text: self._printed.append(text.decode()))
        library.set_print_string_function(options.print_func)
        ctypes.CDLL(None).srand(1)  # it draws from the C library
        before = time.thread_time()
        model = library.train(self._rows, options)
        taken = time.thread_time() - before
        sign = 1.0 if model.contents.label[0] == 1 else -1.0  # scores are positive for the label that came first
        w = sign * np.ctypeslib.as_array(model.contents.w, (problem.X.shape[1] + 1,))
        (iterations,) = re.findall(r"#iter = (\d+)", "".join(self._printed))
        point = Point(int(iterations), taken, problem.objective(w))
        library.free_and_destroy_model(ctypes.byref(model))
        return point


def sgd(problem: Problem, X: sp.csr_array, seconds: float, weights: list[np.ndarray] | None = None) -> list[Point]:
    """scikit-learn's SGDClassifier, averaged, at epochs 1, 2, 4, …; X has the bias as a feature. `weights` gets those of each."""
    loss = {"hinge": "hinge", "logistic": "log_loss"}[problem.loss]
    from sklearn.linear_model import SGDClassifier

    n = len(problem.y)
    machine = SGDClassifier(loss=loss, alpha=1.0 / (problem.C * n), average=True, fit_intercept=False, random_state=0)
    found: list[Point] = []
    taken, epochs = 0.0, 0
    while taken < seconds and epochs < 128:
        before = time.thread_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # overflows of its first steps when alpha is small
            machine.partial_fit(X, problem.y, classes=[-1.0, 1.0])
        taken += time.thread_time() - before
        epochs += 1
        if epochs & (epochs - 1) == 0:
            w = machine.coef_[0].astype(np.float64)
            found.append(Point(epochs, taken, problem.objective(w)))
            if weights is not None:
                weights.append(w)
    return found


class VowpalWabbit:
    """--l2 1/(C n) a row, from a cache file that is made before. `folder` is for its files.

    Its default steps are scaled for each feature, but their shrinking by l2 is not: they end beside the optimum (measured 0.7 %
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

    def points(self, kind: str, problem: Problem, seconds: float) -> list[Point]:
        """After passes 1, 2, 4, …: processor time by the clock's share of it."""
        run = self.run(kind, problem.C, 128, seconds)
        processor = (run.usage.ru_utime + run.usage.ru_stime) / run.wall
        powers = [number for number in sorted(run.saved) if number & (number - 1) == 0 and number > 0]
        return [Point(k, processor * run.when[k], problem.objective(self.weights(run.saved[k]))) for k in powers]


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

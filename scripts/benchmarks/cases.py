"""What benchmarks share: data sets, processor time, medians, and versions of the package that take turns in one run."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("STREAMCUT_DATA", ROOT.parent / "shared" / "data"))
SCALED = ("skin_nonskin", "covtype_20k", "svmguide1", "spambase")  # columns divided by their largest value
LONG = 5.0  # seconds of a run that is not repeated


@cache
def load(name: str) -> tuple[sp.csr_array, np.ndarray, np.ndarray | None]:
    """(rows, labels, queries) of a training set, shuffled unless it has queries; two labels are ±1, grey levels 0 to 1.

    `NAME:LABEL` is that label against the rest, a * at the end is ignored. The text is parsed once for all processes.
    """
    name, _, positive = name.rstrip("*").partition(":")
    stored = Path(tempfile.gettempdir()) / "streamcut-benchmarks" / f"{name}.npz"
    if not stored.exists():
        stored.parent.mkdir(exist_ok=True)
        with lzma.open(DATA / name / "train.svm.xz") as file:
            X, y, qid = load_svmlight_file(file, zero_based=False, query_id=True)
        part = stored.with_suffix(f".{os.getpid()}.npz")
        np.savez(part, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y, qid=qid)
        part.replace(stored)
    with np.load(stored) as parts:
        X = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
        y, qid = parts["y"], parts["qid"]
    if len(np.unique(qid)) > 1:
        return X, y, qid
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    if name == "mnist":
        X = X / 255.0
    if name in SCALED:
        X = sp.csr_array(X @ sp.diags_array(1.0 / np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-300)))
    if positive or len(np.unique(y)) == 2:
        y = np.where(y == (float(positive) if positive else y.max()), 1.0, -1.0)
    return X, y, None


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """(processor seconds, what `work` returns)."""
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def median(run: Callable[[], Any], seconds: Callable[[Any], float]) -> Any:
    """The result of the run with the median of seconds: of three, of one that takes long."""
    runs = [run()]
    while len(runs) < 3 and seconds(runs[0]) < LONG:
        runs.append(run())
    return sorted(runs, key=seconds)[len(runs) // 2]


def serve(answer: Callable[..., dict[str, Any]]) -> None:
    """Answer requests, a line of JSON each, on standard output, which gets nothing else; errors are answers."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for text in sys.stdin:
        try:
            result = answer(**json.loads(text))
        except Exception as error:  # an option that a version does not know, for example
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result, default=float), file=answers, flush=True)


class Version:
    """A process that runs `script` --serve with the package in `tree`."""

    def __init__(self, tree: Path, script: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tree), str(Path(script).parent)))}
        command = [sys.executable, "-P", script, "--serve"]
        self._child = subprocess.Popen(
            command, cwd=tree, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(request, default=float) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        return json.loads(line) if line else sys.exit(f"a version ended with {self._child.wait()}")

    def close(self) -> None:
        """End it."""
        self._child.communicate()


@contextmanager
def versions(script: str, revision: str) -> Iterator[tuple[Version, Version]]:
    """The package as it lies here, and that of `revision`, each in a process that runs `script`."""
    with tempfile.TemporaryDirectory(prefix="streamcut-versions-") as folder:
        both = [Version(sources(version, Path(folder, f"v{i}")), script) for i, version in enumerate((None, revision))]
        try:
            yield both[0], both[1]
        finally:
            for version in both:
                version.close()


def sources(revision: str | None, tree: Path) -> Path:
    """The package as it is installed, streamcut/ with io/ in it, of a revision or (None) as it lies here."""
    tree.mkdir()
    if revision is None:
        for folder in ("streamcut", "io"):
            subprocess.run(["cp", "-r", str(ROOT / folder), str(tree / folder)], check=True)
    else:
        command = ["git", "-C", str(ROOT), "archive", revision, "streamcut", "io"]
        archive = subprocess.run(command, capture_output=True, check=False)
        if archive.returncode:
            sys.exit(archive.stderr.decode().strip())
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
    (tree / "io").rename(tree / "streamcut" / "io")
    return tree

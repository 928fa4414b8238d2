"""Compilation ahead of time: the kernels of likely trainings, before they are needed."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from streamcut.compiler.compiling import compile_all
from streamcut.compiler.jit import TARGET
from streamcut.compiler.numba_parts import cpu_target
from streamcut.compiler.rehearsal import Rehearsal
from streamcut.config import CHOICES, LINEAR, SOLVERS, TrainOptions
from streamcut.errors import StreamcutError, UsageError
from streamcut.evaluation import evaluate
from streamcut.foundation.files import scratch_folder
from streamcut.io.conversion.prepared import rehearse
from streamcut.io.memory import MemoryDataset
from streamcut.solver_table import SOLVER_TABLE
from streamcut.training import job_class, train
from streamcut.verification import verify

VALUES = ("ones", "int8", "float32", "float64")  # types of entries; "ones": all are 1 and not stored
USUAL_VALUES = ("ones", "float32")
_TEXT = ("float32", "float64")  # types that rows of text are parsed to


class Kind(NamedTuple):
    """A kind of processor: its LLVM name, and the features (LLVM names) that a processor of that kind must have."""

    cpu: str
    needs: tuple[str, ...] = ()


_V2 = ("+cx16", "+popcnt", "+sahf", "+sse3", "+sse4.1", "+sse4.2", "+ssse3")
KINDS = {  # by machine, best first
    "x86_64": (
        Kind("x86-64-v3", (*_V2, "+avx", "+avx2", "+bmi", "+bmi2", "+f16c", "+fma", "+lzcnt", "+movbe")),
        Kind("x86-64-v2", _V2),
    ),
    "other": (Kind("generic"),),
}
_REHEARSAL = 60.0  # seconds allowed for a training in Python
_LABELS = {"regression": [0.0, 1.0, 2.5], "multiclass": [1.0, 2.0, 3.0], "ranking": [0.0, 1.0, 2.0], "sequence": [1.0, 2.0]}


def warm_up(
    tasks: Sequence[str] = (),
    solvers: Sequence[str] = (),
    values: Sequence[str] = USUAL_VALUES,
    *,
    everything: bool = False,
    into: str | os.PathLike | None = None,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> int:
    """Compile the kernels of `convert`, and of `train`, `predict`, `evaluate` and `verify` for these tasks and solvers, on data
    of these `values`, into the cache on disk, on all processors (or by `workers` processes); returns their number.

    No tasks means all tasks, no solvers the default ones of each task. `everything`: all solvers, losses and values,
    and rows with weights. `into`: a folder instead of the cache, for all processors of this machine's kind; commands read it
    where STREAMCUT_KERNELS names it, or where it is the folder `_kernels` of the package. `on_progress` is called with the
    numbers of kernels compiled so far and found.
    """
    kinds = VALUES if everything else values
    chosen = _trainings(tasks, solvers, everything)
    if not chosen:
        raise UsageError(f"no solver of {', '.join(solvers)} trains task {', '.join(tasks)}")
    works: list[tuple[Callable[..., object], tuple[Any, ...]]] = [(rehearse, (kind, "zarr")) for kind in _TEXT]
    weights = (False, True) if everything else (False,)
    works += [(use, (options, kind, weighted)) for options, kind, weighted in product(chosen, kinds, weights)]
    how: dict[str, Any] = {"workers": workers, "seconds": _REHEARSAL, "on_progress": on_progress}
    if into is None:
        return compile_all(works, **how)
    best, place = kinds_here()[0], Path(into)
    place.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch_folder(None)) as cache:
        target = {"NUMBA_CPU_NAME": best.cpu, "NUMBA_CPU_FEATURES": "", "STREAMCUT_KERNELS": cache, "NUMBA_CACHE_DIR": cache}
        found = compile_all(works, environment=target, **how)
        for file in sorted(Path(cache).rglob("*.nbc")):
            shutil.copy(file, place)
    describe_kernels(place, (best,))
    return found


def kinds_here() -> tuple[Kind, ...]:
    """The kinds of processors that kernels are compiled for on a machine like this one, best first."""
    return KINDS.get(platform.machine(), KINDS["other"])


def describe_kernels(folder: Path, kinds: Sequence[Kind]) -> None:
    """Record in `folder` for which kinds of processors its kernels are."""
    triple = cpu_target.target_context.codegen().magic_tuple()[0]
    (folder / TARGET).write_text(json.dumps([{"triple": triple, "cpu": kind.cpu, "needs": kind.needs} for kind in kinds]))


def _trainings(tasks: Sequence[str], solvers: Sequence[str], everything: bool) -> list[dict[str, Any]]:
    """Valid options of `train`, no two with the same kernels."""
    found = []
    wanted = tasks or [task for task in CHOICES["task"] if task != "auto"]
    those = solvers or (SOLVERS if everything else ("auto",))
    for task, solver, loss, strategy in product(wanted, those, CHOICES["loss"], CHOICES["strategy"]):
        kernel = "linear" if solver == "auto" or solver in LINEAR else "rbf"
        options: dict[str, Any] = {"task": task, "solver": solver, "loss": loss, "strategy": strategy, "kernel": kernel}
        options |= {"k": "1"} if loss.endswith("@k") else {}
        options |= {"l1_only": "1%"} if solver != "auto" and SOLVER_TABLE[solver].columns else {}
        usual = loss == CHOICES["loss"][0] and strategy in (CHOICES["strategy"][0], "one-vs-rest")
        if not (usual or everything):
            continue
        with Rehearsal():
            rows = _few_rows(task, "float32", weighted=False).manifest
        for bias in (1.0, 0.0):  # some solvers have no constant feature
            with suppress(UsageError):
                chosen = TrainOptions(**options, bias=bias)
                job_class(chosen).planned(chosen, rows)
                found.append({**options, "bias": bias})
                break
    return found


def _few_rows(task: str, values: str, *, weighted: bool) -> MemoryDataset:
    y = np.resize(_LABELS.get(task, [-1.0, 1.0]), 12)
    X = np.resize(np.array([[1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 1, 1]]), (12, 3))
    X = X > 0 if values == "ones" else X.astype(values)
    qid = np.arange(12) // 4 if task in ("ranking", "sequence") else None
    return MemoryDataset(X, y, qid=qid, weight=np.ones(12) if weighted else None)


def use(options: dict[str, Any], values: str, weighted: bool) -> None:
    """Train a model on a few rows of these `values`, and use it."""
    rows = _few_rows(options["task"], values, weighted=weighted)
    model = train(rows, workers=1, **options)
    for work in (evaluate, verify):
        with suppress(StreamcutError):  # not every model offers all
            work(model, rows)
    model.score_chunk(replace(rows.read(0), data=np.ones(rows.read(0).nnz)))  # the type of parsed text

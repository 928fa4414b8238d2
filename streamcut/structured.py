"""Structured tasks written in Python: `train` them with a certificate, and `predict`.

StructuredTask defines the interface. Data is streamed as for every other task; the arithmetic of an
example is the task's, so a pass runs at the speed of Python. A line search as in OCAS would need scores between two w, which
only the task can compute, at the price of a pass each; so cuts are taken where the last passes suggest
(streamcut.papers.structured_task). Sequence labelling is built in: streamcut.train(data, task="sequence").

With a kernel, the task receives rows as features whose inner products approximate the kernel: Nyström's, or random Fourier
features. That puts the kernel k(x, x′) wherever the task uses x in Ψ; all that the task adds itself, such as
transitions, stays linear. The certificate is for the problem in these features. A kernel on whole examples with answers has no
such features: it would take all pairs of examples.

>>> class Ordered:
...     "Grades 0 … K − 1, where a mistake costs the distance."
...     def __init__(self, grades):
...         self.grades = grades
...     def size(self, n_features):
...         return self.grades * n_features
...     def joint_features(self, x, y):
...         return x.indices + int(y[0]) * x.shape[1], x.data
...     def loss(self, y, answer):
...         return abs(y[0] - answer[0])
...     def argmax(self, w, x, y=None):
...         scores = (x @ w.reshape(self.grades, -1).T).ravel()
...         if y is not None:
...             scores = scores + abs(np.arange(self.grades) - y[0])
...         return np.array([np.argmax(scores)])
>>> rows = MemoryDataset(np.eye(3), np.array([0.0, 1.0, 2.0]))
>>> model = train(rows, Ordered(3), C=10.0)
>>> model.certificate.converged, [int(answer[0]) for answer in model.predict(rows)]
(True, [0, 1, 2])
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.config import TrainOptions
from streamcut.data.inputs import opened
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.passes import plan_lanes
from streamcut.execution.runner import Interrupted, Runner
from streamcut.foundation.shown import expect_known, unknown
from streamcut.foundation.units import plain
from streamcut.io.dataset import Dataset
from streamcut.io.memory import MemoryDataset
from streamcut.jobs.kernel_data import with_features
from streamcut.kernels.maps import FeatureMap
from streamcut.models.certificate import Certificate, StopReason
from streamcut.oracles.mapped import MappedDataset
from streamcut.papers.structured_task import StructuredOracle, StructuredTask, examples, stabilised
from streamcut.solvers import cpa
from streamcut.solvers.progress import Iteration, Observer, Progress, StoppingRule

_SOLVERS = {"stabilised": stabilised, "cpa": cpa.solve}
_OPTIONS = (
    "C",
    "tol",
    "tol_relative",
    "max_passes",
    "max_time",
    "kernel",
    "gamma",
    "degree",
    "coef0",
    "nystroem",
    "fourier",
    "seed",
)

__all__ = ["StructuredModel", "StructuredTask", "train"]


@dataclass(frozen=True, eq=False)
class StructuredModel:
    """weights float64 (D,) of `task`, their certificate, and one record per iteration. Keep the weights with numpy.save.

    n_features is that of the rows before `map`, if any, is applied; the task receives the mapped rows.
    """

    task: StructuredTask
    weights: np.ndarray
    n_features: int
    certificate: Certificate
    history: list[Iteration]
    map: FeatureMap | None = None

    def predict(self, data: str | os.PathLike | Dataset) -> list[Any]:
        """The answer to every example of a store or an opened data set, in order. Raises BadInputError for unknown features."""
        dataset = opened(data)
        statistics = dataset.manifest.statistics
        if statistics.n_features > self.n_features:
            raise BadInputError(f"the data has {statistics.n_features:,} features, but the model has {self.n_features:,}")
        feed, width = Feed(dataset), self.n_features
        if self.map is not None:
            feed, width = Feed(MappedDataset(dataset, self.map)), self.map.n_features
        blocks = feed.blocks(0, statistics.n_rows, feed.buffers(), Traffic(), groups=True)
        return [self.task.argmax(self.weights, x) for chunk in blocks for x, _ in examples(chunk, width)]


def train(
    data: str | os.PathLike | Dataset,
    task: StructuredTask,
    *,
    solver: str = "stabilised",
    max_cuts: int = 500,
    on_iteration: Observer | None = None,
    stop: Callable[[], bool] = lambda: False,
    **options: Any,
) -> StructuredModel:
    """Train `task` on a store or an opened data set, as streamcut.train does with the options of the same names: C, tol,
    tol_relative, max_passes, max_time, kernel, gamma, degree, coef0, nystroem, fourier, seed.

    C is the weight of an example's loss, and gaps are in mean loss over examples. `solver`: "stabilised", with fewer
    passes, or "cpa". A `kernel` other than linear needs `nystroem` or `fourier`, the number of its features.

    Raises UsageError when the task's argmax scores below y itself, and for invalid options; KeyboardInterrupt when
    `stop` is true before there is an answer.
    """
    if solver not in _SOLVERS:
        raise UsageError(f"solver: {unknown(solver, tuple(_SOLVERS))}")
    expect_known("structured.train", options, _OPTIONS)
    kernel = options.get("kernel", "linear")
    if kernel != "linear" and not (options.get("nystroem") or options.get("fourier")):
        raise UsageError(f"kernel: for {kernel} give nystroem or fourier, the number of features that approximate it")
    chosen = TrainOptions(**options)
    rows = opened(data)
    dataset = with_features(Feed(rows), chosen) if chosen.maps else rows
    statistics = dataset.manifest.statistics
    rule = StoppingRule(chosen.tol, chosen.tol_relative, None, chosen.max_passes, chosen.max_time)
    progress = Progress(rule, on_iteration, stop=stop)
    pinned = frozenset(range(len(dataset.manifest.shards))) if isinstance(dataset, MemoryDataset) else frozenset[int]()
    with Runner(Feed(dataset, pinned), plan_lanes(statistics), stop=progress.stop) as runner:
        oracle = StructuredOracle(runner, task, C=chosen.C)
        try:
            solution = _SOLVERS[solver](oracle, progress, max_cuts=plain(max_cuts))
        except Interrupted:
            raise KeyboardInterrupt("training was stopped before it had an answer") from None
    certificate = Certificate(
        primal=solution.primal,
        lower_bound=solution.lower_bound,
        c_bar=oracle.c_bar,
        tol=chosen.tol,
        tol_relative=chosen.tol_relative,
        converged=solution.reason is StopReason.CONVERGED,
        stop_reason=solution.reason,
    )
    width, feature_map = rows.manifest.statistics.n_features, dataset.map if isinstance(dataset, MappedDataset) else None
    return StructuredModel(task, solution.w, width, certificate, solution.history, feature_map)

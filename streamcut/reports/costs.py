"""Predicted cost of training on a cluster, without one."""

from __future__ import annotations

from dataclasses import replace

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.cost import Assumed, Work, describe
from streamcut.io.dataset import Dataset
from streamcut.training import Session


def cluster_cost(data: Dataset, options: TrainOptions, assumed: Assumed) -> list[tuple[str, str]]:
    """(what, how long) of a pass over `data` by the solver of these options, on the assumed cluster.

    Reads the store's metadata, and rows only if features are made from some. Raises UsageError for a solver that runs on
    threads only.
    """
    on_a_cluster = options if options.distributed else replace(options, scheduler="local-cluster")
    return describe(cluster_work(Session(data, on_a_cluster, scheduler=None)), assumed)


def cluster_work(run: Session) -> Work:
    """The work of one pass of a training that has not started. Raises UsageError as cluster_cost does."""
    record, manifest = run.options.record, run.dataset.manifest
    if not run.job.distributable:
        raise UsageError(f"--assume: {run.options.chosen_solver} runs on threads only, not on Dask")
    sweeps = run.options.sweeps if record.dual else 0
    needs, lanes = run.job.needs(manifest), len(run.job.lanes)
    rests = needs.climbing and not run.job.risk.loss.smooth  # type: ignore[attr-defined]
    return Work.of(manifest, needs, lanes, sums=record.sums, sweeps=sweeps, rests=rests)

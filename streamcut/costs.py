"""What training on a cluster would take, before there is one."""

from __future__ import annotations

from streamcut.by_data import for_data
from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.cost import Assumed, Work, describe
from streamcut.io.dataset import Dataset
from streamcut.training import job_class


def cluster_cost(data: Dataset, options: TrainOptions, assumed: Assumed) -> list[tuple[str, str]]:
    """(what, how long) of a pass over `data` by the solver of these options, on a cluster as it is assumed.

    Reads the manifest alone. Raises UsageError for a solver that runs on threads only.
    """
    options = for_data(options, data)
    job = job_class(options).planned(options, data.manifest)
    if not job.distributable:
        raise UsageError(f"--assume: {options.chosen_solver} runs on threads only, not on Dask")
    sweeps = options.sweeps if options.record.dual else 0
    return describe(Work.of(data.manifest, job.needs(data.manifest), len(job.lanes), sweeps), assumed)

"""Clusters that a user could have started, workers that die at a failpoint, and a store of many shards for them."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from contextlib import contextmanager

import distributed
import numpy as np
import scipy.sparse as sp

import streamcut


def make_store(path):
    """A store of many shards, with row weights."""
    rng = np.random.default_rng(5)
    X = sp.random_array((3000, 40), density=0.2, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(40) + 0.3 * rng.standard_normal(3000) > 0, 1.0, -1.0)
    with streamcut.create(path, 40, shard_nnz=1000) as out:
        out.append(X, y, weight=rng.uniform(0.5, 2.0, 3000))
    return streamcut.open(path)


@contextmanager
def two_workers():
    """The client of a cluster of two processes."""
    options = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL, "memory_limit": "2GB"}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as server,
        distributed.Client(server, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def started(folder, *failpoints):
    """(address, {name: process}) of a scheduler and a worker without nanny for each of `failpoints`; gone at the end."""
    with growing(folder, folder, failpoints) as (address, processes, _):
        yield address, processes


@contextmanager
def growing(folder, local, failpoints):
    """As `started`, and a function (number, failpoint) that starts one more worker, which writes to the folder `local`."""
    shown = folder / "scheduler.json"
    dask = [sys.executable, "-P", "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = {}
    try:
        where = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", shown]
        processes["scheduler"] = subprocess.Popen([*dask, "scheduler", *where], **quiet)

        def start(number, failpoint):
            options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "2GB", "--local-directory", local]
            processes[f"worker {number}"] = subprocess.Popen(
                [*dask, "worker", "--scheduler-file", shown, *options],
                env={**os.environ, "STREAMCUT_FAILPOINT": failpoint},
                **quiet,
            )

        for number, failpoint in enumerate(failpoints):
            start(number, failpoint)
        with distributed.Client(scheduler_file=str(shown), set_as_default=False) as client:  # waits for the whole file
            if failpoints:
                client.wait_for_workers(len(failpoints), timeout=300)
            address = client.scheduler.address
        yield address, processes, start
    finally:
        for process in processes.values():
            process.kill()
        for process in processes.values():
            process.wait()

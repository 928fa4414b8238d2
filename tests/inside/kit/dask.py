"""A runner on the workers of a cluster."""

from __future__ import annotations

from streamcut.execution.dask.plan import ClusterNeeds
from streamcut.execution.dask.runner import Cluster, DaskRunner
from streamcut.execution.plan import Needs


def runner_on(client, dataset, lanes, scratch, *, deadline=20.0, **options):
    cluster = Cluster(client, local=False, deadline=deadline)
    cluster.prepare(dataset, scratch)
    cluster.plan(ClusterNeeds(Needs(41, 10, row_bytes=24), dataset.manifest, lanes), budget=10**10)
    return DaskRunner(cluster, dataset, lanes, scratch=scratch, **options)

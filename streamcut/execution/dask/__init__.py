"""Passes on a Dask cluster. Nothing else in the package imports Dask; streamcut.training loads it on request.

`runner.py` runs passes, with `cluster.py` (the workers) and `flights.py` (lanes in flight); `worker.py` runs in the workers,
`plan.py` plans their memory and assigns lanes, shards and row caches, `ranges.py` adds up large sums on the workers. The row
state lies in a folder that all processes see (`shared_rows.py`), or on the workers' own disks (`row_exchange.py`,
`owned_rows.py`); row caches stay where they are (`cache_slots.py`).

Any Dask client will do: of dask-jobqueue, dask-kubernetes, Coiled and others, with TLS if it is set up.

    cluster = dask_jobqueue.SLURMCluster(cores=8, memory="64GB", local_directory="/local/disk")
    cluster.adapt(minimum=2, maximum=64)  # lanes move between passes; at least 2: each lane's state is on two workers
    with distributed.Client(cluster) as client:
        model = streamcut.train("s3://bucket/rows.zarr", scheduler=client, lanes=512, checkpoint="run")
    # --scheduler tls://HOST:PORT takes its certificates from Dask's configuration (distributed.comm.tls.*)
"""

"""Passes on a Dask cluster. Nothing else in the package imports Dask; streamcut.training does so when it is asked for.

`runner.py` runs passes, by `cluster.py` (who is there) and `flights.py` (lanes on their way); `worker.py` is what runs in the
workers, `plan.py` their memory and which lanes, shards and row caches are whose, `ranges.py` how they add up large sums. The row
state lies in a folder that all of them see (`shared_rows.py`), or on the workers' own disks (`row_exchange.py`, `owned_rows.py`);
row caches stay where they are (`cache_slots.py`).

Whoever has a client has a cluster: of dask-jobqueue, dask-kubernetes, Coiled and others, with TLS if it has that.

    cluster = dask_jobqueue.SLURMCluster(cores=8, memory="64GB", local_directory="/local/disk")
    cluster.adapt(minimum=2, maximum=64)  # lanes move between passes; two at least, for each lane's state is on two
    with distributed.Client(cluster) as client:
        model = streamcut.train("s3://bucket/rows.zarr", scheduler=client, lanes=512, checkpoint="run")
    # --scheduler tls://HOST:PORT takes its certificates from Dask's configuration (distributed.comm.tls.*)
"""

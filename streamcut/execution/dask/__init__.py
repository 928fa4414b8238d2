"""Passes on a Dask cluster. Nothing else in the package imports Dask; streamcut.training does so when it is asked for.

`runner.py` is the client's side, `worker.py` what runs in the workers, `plan.py` their memory and which lanes, shards and row
caches are whose; the row state lies in files that all of them see (`shared_rows.py`), row caches stay where they are
(`cache_slots.py`).
"""

"""How passes run: moving rows, keeping the row state, accounting for memory. Nothing here knows the losses.

`passes.py` defines a pass, `runner.py` runs it on threads and `cluster.py` on Dask, with the same bits. `lanes.py` defines the
fixed ranges of rows that are summed in order, `feed.py` supplies their rows, `row_state.py` keeps numbers for each
row, `row_cache.py` keeps copies of the rows that dual ascent may still move; `plan.py` divides the memory
beforehand.
"""

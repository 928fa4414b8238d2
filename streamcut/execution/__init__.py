"""How passes run: rows are moved, what is known of each row is kept, memory is counted. No loss is known here.

`passes.py` says what a pass is, `runner.py` runs it on threads and `dask/` on a cluster, with the same bits. `lanes.py` are the
fixed ranges of rows that are summed in order, `feed.py` is where their rows come from, `row_state.py` keeps numbers of each
row, `row_cache.py` and `cache_passes.py` copies of the rows that dual ascent may still move; `plan.py` divides the memory
beforehand. A new way to run passes is a class with the methods of `runner.PassRunner`; tests/kit/contracts/runner.py says whether
it is one.
"""

"""Solvers: one algorithm a file, with its paper, its problem and its stopping rule at the top.

A solver gets an oracle, never data, and a `progress.Progress`, which reports, stops and saves; it returns a `progress.Solution`
or the parts of a model. Its state between iterations is its checkpoint (`state.py`). A new one is a file here and an entry in
streamcut.solver_table, which declares what it trains, needs and returns; `cpa.py` is the shortest example.
"""

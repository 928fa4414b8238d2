"""Dual ascent in passes, for bundle-dca: each pass yields a predicted cut and the cut of the dual point it reaches.

`ascent.py` and `passes.py` hold two classes; `sequence.py` adds what sequences need, `loss_cache.py` the cached rows,
`interior.py` the interior points that solve for cached rows of few features. `random_order.py` sets the order of rows. The
steps themselves are compiled: streamcut.compiled.dual, viterbi.
"""

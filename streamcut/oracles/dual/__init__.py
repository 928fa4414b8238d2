"""Dual ascent in passes, for bundle-dca: each pass yields a predicted cut and the cut of the dual point it reaches.

`ascent.py` and `passes.py` hold the common part and two classes; `classes.py` and `sequence.py` add what several
classes and sequences need, the `*_cache.py` files their cached rows, `interior.py` the interior points that solve
for cached rows of few features. `random_order.py` sets the order of rows. The steps themselves are compiled:
streamcut.compiled.dual, multiclass_dual, viterbi.
"""

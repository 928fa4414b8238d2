"""Dual ascent in passes, for bundle-dca: each pass leaves a predicted cut and that of the dual point which it reached.

`ascent.py` and `passes.py` are what all have in common, and two classes; `classes.py` and `sequence.py` add what several
classes and sequences have of their own, the `*_cache.py` files their cached rows, `interior.py` how those of few
features are solved for. `random_order.py` says in which order rows come. The steps themselves are compiled:
streamcut.compiled.dual, multiclass_dual, viterbi.
"""

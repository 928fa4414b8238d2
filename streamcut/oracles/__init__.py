"""Oracles: what a solver may query (cuts, losses, steps along a line), computed by passes. Solvers see no rows.

`decomposable.py` is for losses that are sums over rows, with `row_passes.py` for two classes, `columns*.py` for problems side by
side (classes, folds, values of C and λ), `classes*` for a joint loss of all classes, `sequence*` for labelled sequences;
`global_risk.py` is for losses that couple all scores, `kernel_columns.py` for kernels; `dual/` adds dual ascent. A new family of
losses is an oracle with these methods and the passes behind it (streamcut.execution.passes); a new loss of single rows needs
neither, see streamcut.losses.
"""

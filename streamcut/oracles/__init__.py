"""Oracles: what a solver may ask of the data (cuts, losses, steps along a line), answered by passes. Solvers see no rows.

`decomposable.py` is for losses that are sums over rows, with `row_passes.py` for two classes, `columns*.py` for problems side by
side (classes, folds, values of C and λ), `classes*` for a loss of all classes together, `sequence*` for labelled sequences;
`global_risk.py` is for losses of all scores at once, `kernel_columns.py` for kernels, `sampled.py` for sampled cuts; `dual/`
adds dual ascent. A new family of losses is an oracle with these methods and the passes behind it (streamcut.execution.passes); a
new loss of single rows needs neither, see streamcut.losses.
"""

"""Reports on trained models and planned trainings, for `streamcut report`, `weights` and `train --assume`.

`page.py` assembles an HTML page from `facts.py` (what a model records) and the plots of `convergence.py`, `quality.py`
and `comparison.py`, which `parts.py` turns into HTML; only `drawing.py` and `grids.py` import Matplotlib.
`named_weights.py` lists weights by the names of their features, `costs.py` predicts the time of a pass on a cluster. A new plot
is a function in one of these files and its line in `page.py`.
"""

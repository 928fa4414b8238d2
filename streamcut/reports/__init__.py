"""Reports on trained models, for `streamcut report` and `weights`.

`page.py` assembles an HTML page from `facts.py` (what a model records) and the plots of `convergence.py` and `quality.py`,
which `parts.py` turns into HTML; only `drawing.py` and `grids.py` import Matplotlib.
`named_weights.py` lists weights by the names of their features. A new plot
is a function in one of these files and its line in `page.py`.
"""

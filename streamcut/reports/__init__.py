"""What trained models and trainings to come say of themselves, for `streamcut report`, `weights` and `train --assume`.

`page.py` puts an HTML page together from `facts.py` (what a model says of itself) and the plots of `convergence.py`, `quality.py`
and `comparison.py`, which `parts.py` turns into HTML; `drawing.py` and `grids.py` know Matplotlib, which nothing else imports.
`named_weights.py` lists weights by the names of their features, `costs.py` what a pass would take on a cluster. A new plot is a
function in one of those files and its line in `page.py`.
"""

"""Pages and plots about trained models, for `streamcut report`.

`page.py` puts an HTML page together from `facts.py` (what a model says of itself) and `plots.py`; `drawing.py` and `grids.py`
know Matplotlib, which nothing else imports. A new plot is a function in `plots.py` and its line in `page.py`.
"""

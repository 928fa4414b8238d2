"""What a model says: `page.py` is the HTML page of `streamcut report`, with the plots of `plots.py`; `weights.py` lists weights
by the names of their features, and what they add to the score of a row.

Only `plots.py` needs Matplotlib. A new plot is a function there, called in `page.py`.
"""

"""What a model says: `page.py` is the HTML page of `streamcut report`, with the plots of `plots.py` in the style of `drawing.py`;
`named_weights.py` lists weights by the names of their features, `explained.py` what they add to the score of a row.

Only `drawing.py` and what it draws need Matplotlib. A new plot is a function in `plots.py`, called in `page.py`.
"""

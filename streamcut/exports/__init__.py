"""Models for other programs: `export.py` writes one, `targets.py` lists what each program can hold.

Each program has a file with a function `content`; `linear_form.py` is what they read: weights, intercepts and labels. A model of
tables becomes a scikit-learn Pipeline that begins with `table_encoder.py`. Imports go down to models; the command line
and users import this package, and the estimators `table_encoder.py`.
"""

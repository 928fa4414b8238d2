"""Tables (CSV, Parquet, Arrow, frames): read in batches, and encoded by the recipe into rows of features.

`files.py`, `frames.py` and `text_files.py` read batches; `fitting.py` settles the roles of columns, which `roles.py` guesses,
and finds bins, means and words; `encoder.py` encodes a batch: `keys.py` gives categories and words their features, with the
kernels of `kernels.py` (hashing, columns to CSR); `texts.py` finds words. `source.py` puts them together for
`convert` and `predict`, and encodes batches in several threads. A new role of columns is a new case in `roles.py` and
`encoder.py`. `remarks.py` points out likely mistakes in a table.
"""

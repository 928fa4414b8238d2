"""Tables (CSV, Parquet, Arrow, frames): read in batches, and encoded by the recipe into rows of features.

`files.py`, `frames.py` and `text_files.py` read batches; `opening.py` settles the roles of columns, which `roles.py` guesses;
`fitting.py` finds bins, means and words; `encoder.py` encodes a batch: `keys.py` gives categories and words their features, with
the kernels of `word_kernels.py` (hashing), `text_kernels.py` (text to words) and `row_kernels.py` (columns to CSR). `source.py`
puts them together for `convert` and `predict`, and encodes batches in several threads. A new role of columns is a new case in
`roles.py` and `encoder.py`. `remarks.py` points out likely mistakes in a table.
"""

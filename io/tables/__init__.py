"""Tables (CSV, Parquet, Arrow, frames): read in batches, and encoded by the recipe into rows of features.

`files.py` reads, `roles.py` guesses what columns are, `fitting.py` finds bins, `encoder.py` makes rows of a batch with the
kernels of `word_kernels.py` (words to features), `text_kernels.py` (text to words) and `row_kernels.py` (columns to CSR),
`source.py` is where `convert` and `predict` come in. A new role of columns is a new case in `roles.py` and `encoder.py`.
"""

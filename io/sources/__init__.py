"""Rows from files that are not svmlight text: SciPy, MatrixMarket, AnnData, Parquet, and stores themselves.

A reader for each format with the methods of `row_source.TableReader`; `choice.py` finds the one for a file, `canonical.py`
makes its rows sorted, without duplicates, of the types that stores have. A new format is a reader here and its line in
`row_source.py` and `choice.py`.
"""

"""Rows from files other than svmlight text: SciPy, MatrixMarket, AnnData, Parquet, and stores themselves.

Each has a reader with the methods of `row_source.TableReader`; `canonical.py` makes its rows sorted, without duplicates, of the
types that stores have. A new reader is a file here, and a record in streamcut.io.formats that names it.
"""

"""Rows from files other than text and tables: SciPy, MatrixMarket, AnnData, Parquet with lists, and stores themselves.

`source.py` says what every source of rows is, here and in streamcut.io.text and .tables. `matrices.py` is the source over files
that can be read from any row, each of a class of `matrix_files.py` or `cells.py`; `canonical.py` makes their rows sorted, without
duplicates, of the types that stores have. A new reader is such a class, and a record in streamcut.io.formats that names it.
"""

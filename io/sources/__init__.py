"""Rows from files that are not svmlight text: SciPy, MatrixMarket, AnnData, Parquet, and stores themselves."""

"""Stores whose lanes hold several batches."""

from streamcut.oracles.random_order import RandomOrder

SMALL = RandomOrder(nnz=30, batch=8)  # batches of about 60 rows of the data below

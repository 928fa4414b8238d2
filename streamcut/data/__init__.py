"""Data as callers give them: stores, arrays in memory, raw files that are converted first; and which options follow from data.

Imports io and models. A new kind of data that Python may give comes to `datasets`; what a model wants of it, to `inputs`.
"""

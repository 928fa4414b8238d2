"""Data as callers give it: stores, arrays in memory, raw files that are converted first; and the options that data implies.

Imports io and models. A new kind of Python input belongs in `datasets`; its preparation for a model, in `inputs`.
"""

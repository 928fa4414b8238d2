"""Compilation of kernels: decorators, a cache of machine code that loads fast, and the notice of a first use.

Imports foundation alone. Nothing else in the package uses Numba's internal modules.
"""

"""Compilation of kernels: decorators, child processes and their linking, rehearsals of the work ahead.

Imports foundation alone. Nothing else in the package uses Numba's internal modules.
"""

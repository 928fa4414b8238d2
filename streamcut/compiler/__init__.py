"""How kernels are compiled: the decorators of streamcut.compiled, compiling in child processes, what these link, what will be
called.

Imports foundation alone. Nothing else in the package reaches into Numba's own modules.
"""

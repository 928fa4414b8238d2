"""Compiled kernels: arrays in, arrays out, nothing else. Other Numba code is in streamcut.io alone.

A file holds the kernels of one algorithm or one family of losses, decorated with streamcut.compiler.jit.kernel (`allocating` if
it makes arrays). Functions that only kernels call are `helper` or `inlined`, and may be in other files here. Callers allocate,
kernels fill; computed indices of writes are bounded by an argument. A helper called with a literal number is compiled for that
number; `a[:] = b` for arrays, and passing large records on, take long to compile. Kernels with many arrays take them as
NamedTuples. Sums that enter a bound are float64, in a fixed order or exact on a grid
(`streamcut.foundation.rounding.exact_rounder`).
"""

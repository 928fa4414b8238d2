"""Compiled kernels: arrays in, arrays out, nothing else. The only Numba code beside that of streamcut.io.text.

A file holds the kernels of one algorithm or one family of losses, decorated with streamcut.compiler.jit.kernel (`allocating`
where it makes arrays); what only kernels call is a `helper`, or `inlined`, and may come from other files here. Callers allocate,
kernels fill; what is written at a computed index is bounded by an argument. An argument of a helper that is a number in the code
has it compiled for that number; `a[:] = b` for arrays, and large records handed on, take long to compile. Kernels that take many
arrays take them as NamedTuples. Sums that a bound is made of are float64, in a fixed order or exact on a grid
(`linear.exact_rounder`).
"""

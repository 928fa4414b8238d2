"""Compiled kernels: arrays in, arrays out, nothing else. The only Numba code beside that of streamcut.io.text.

A file holds the kernels of one algorithm or one family of losses, decorated with streamcut.jit.kernel; helpers may come from
other files here. Callers allocate, kernels fill; what is written at a computed index is bounded by an argument. Kernels that
take many arrays take them as NamedTuples. Sums that a bound is made of are float64, in a fixed order or exact on a grid
(`linear.exact_rounder`).
"""

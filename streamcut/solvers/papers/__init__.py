"""Solvers of the five papers kept for comparison: sampled cuts, the stochastic batch perceptron and its rivals, BSGD.

Imports what streamcut.solvers imports. Solvers that only reproduce or rival a paper belong here; those that `train` chooses by
itself, and their shared code, stay one folder up.
"""

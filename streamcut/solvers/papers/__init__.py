"""Solvers of the five papers that are there to be compared: sampled cuts, the stochastic batch perceptron and its rivals, BSGD.

Imports what streamcut.solvers imports. A solver that only repeats or rivals a paper comes here; those that `train` chooses by
itself, and what they share, stay one folder up.
"""

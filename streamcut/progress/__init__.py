"""Progress display of a training.

display.py shows records of solvers on a terminal, with the pass on its last line, in logs, in notebooks, or as JSON, with an
estimate of the time left.

A display is called with the records of a solver (streamcut.solvers.progress) and reads the progress of a pass from a runner. It
imports neither; the functions that train and the command line use it.
"""

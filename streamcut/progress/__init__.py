"""What a training shows while it goes.

display.py   on a terminal, in logs, in notebooks, or as JSON
columns.py   records of solvers as texts under each other
eta.py       when the gap will be within the tolerance

A display is called with the records of a solver (streamcut.solvers.progress) and asks a runner how far its pass is. It imports
neither; the functions that train and the command line use it.
"""

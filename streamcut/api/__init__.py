"""Every verb of streamcut: what it takes and what it does, in Python and in a shell.

The signatures and texts stand here alone, in making.py and using.py; `streamcut.NAME` is the function of that name, the command
line makes its commands of them (streamcut.cli.made), and so do the stub and the reference. Importing this package imports no
library: a verb's own module is imported when it runs. A line `name   text` says what a parameter is; what follows "In a shell:"
are examples. A new verb is a function here, a name in streamcut/__init__.py and, for the command line, one in streamcut.cli.
"""

from streamcut.api.making import convert, cross_validate, fit, train, tune
from streamcut.api.using import calibrate, certify, evaluate, explain, export, predict, report, standard_errors, verify, weights
from streamcut.api.verb import VERBS

__all__ = [
    "VERBS", "calibrate", "certify", "convert", "cross_validate", "evaluate", "explain", "export",
    "fit", "predict", "report", "standard_errors", "train", "tune", "verify", "weights",
]  # fmt: skip

"""Every verb of streamcut: what it takes and what it does, in Python and in a shell.

The signatures and texts stand here alone, in making.py and using.py; `streamcut.NAME` is the function of that name, the command
line makes its commands of them (streamcut.cli.made), and so do the stub and the reference. Importing this package imports no
library: a verb's own module is imported when it runs. A line `name   text` says what a parameter is; what follows "In a shell:"
are examples. A new verb is a function here and the module that does its work; with a `command` it is one, too.
"""

from streamcut.api.making import *  # noqa: F403 - verbs
from streamcut.api.using import *  # noqa: F403
from streamcut.api.verb import VERBS as VERBS

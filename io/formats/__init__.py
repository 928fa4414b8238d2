"""The formats of input: for each a record (`format.py`) that says all that others know of it.

How it is recognised, which options of `convert` mean something for it, how its rows are read and in how much memory, whether
workers of a cluster can convert it, and how `predict` reads it on the way. `registry.py` lists the records, `finding.py` tells of
which format files are. Readers are in streamcut.io.text, .tables and .sources; they are loaded when a record's functions run, so
that the command line knows all formats at once. A new format is a file here, or a record in one, and its line in `registry.py`.
"""

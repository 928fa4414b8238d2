"""Base of all other packages: blocks of rows, safe access to files, numbers with units, rounding, the machine.

Imports errors and config at most. A module belongs here if several independent layers need it and it does not depend on training;
code that one layer needs stays there.
"""

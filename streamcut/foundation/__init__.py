"""What everything else stands on: blocks of rows, files and the door to them, numbers with units, rounding, the machine.

Imports errors and config at most. A module comes here when layers that do not know each other need it and it knows nothing of
training; what only one of them needs stays there.
"""

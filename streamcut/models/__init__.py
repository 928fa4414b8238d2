"""The results of training: models, their files, certificates, checkpoints.

`model.py` is what every model has: certificates, decisions by task, the record of training; `linear.py` and `kernel.py` are the
two ways to score. `files.py` writes and reads them (.npz without pickles), `checkpoint.py` keeps the state of a solver between
iterations. Models score rows and know their labels; they know neither solvers nor stores. A new way to score is a data class and
its line in `packing._MODULES`.
"""

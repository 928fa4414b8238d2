"""The results of training: models, their files, certificates, checkpoints.

`model.py` defines what every model has, and each kind has a file of its own; `files.py` writes and reads them (.npz without
pickles), `checkpoint.py` keeps the state of a solver between iterations. Models score rows and know their labels; they know
neither solvers nor stores. A new kind of model is a data class and its line in `packing._MODULES`.
"""

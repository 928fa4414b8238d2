"""From a table to a model in one go: `streamcut fit` and `streamcut.fit`.

`fit` calls the public functions `convert`, `tune` and `train`; this package holds what connects them: which rows are held out,
and the final summary (`fitted`). Only the command line is above it; code that other commands could
use belongs in a layer below.
"""

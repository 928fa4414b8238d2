"""From a table to a model in one go: `streamcut fit` and `streamcut.fit`.

`fit` calls what the other doors call: `convert`, `tune`, `train`; here is what goes between them: which rows are held out
(`held_out`), and what is told in the end (`fitted`). Above it are the command line and nothing else; what another command could
use, too, belongs in a layer below.
"""

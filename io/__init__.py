"""The storage layer: rows are parsed, written, read and verified in shards. The on-disk format is in FORMAT.md.

`opening.py` opens a store, `dataset.py` and `manifest.py` say what every data set has, `memory.py` is one of arrays; `stores/`
has their files, `formats/` what is known of each format of input, `text/`, `tables/` and `sources/` its readers, `conversion/`
the way from one to another, `recipe/` how features were made. It imports the foundation and kernels of its own, nothing of
training. A new format is a record in `formats/`.
"""

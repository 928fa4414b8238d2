"""The storage layer: rows are parsed, written, read and verified in shards. The on-disk format is in FORMAT.md.

`opening.py` opens a store; `dataset.py` and `manifest.py` define what every data set has; `memory.py` is a data set of arrays;
`remote.py` reads and writes objects of object stores, `outputs.py` puts a file in its place once it is complete; `stores/` reads
and writes store files, `formats/` has a record for each input format, `text/`, `tables/` and `sources/` the readers,
`conversion/` the way from one format to another, `recipe/` how features were made. It imports the foundation and kernels of its
own, nothing of training. A new format is a record in `formats/`.
"""

"""Shards on disk: the format of FORMAT.md, its writer and readers, and the checksums that guard every byte.

`spec.py` has the names and types of the format, `io/manifest.py` its table of contents. `writer.py` writes what `zarr_layout.py`
or `hdf5_store.py` encodes, in the order that `files.py` says; `store.py`, `hdf5_store.py` and `remote_store.py` read it,
guarded by checksums and by `structure.py` (the invariants kernels rely on). Change the format in FORMAT.md and `spec.py` first.
"""

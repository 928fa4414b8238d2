"""Shards on disk: the format of FORMAT.md, its writer and readers, and the checksums that guard every byte.

`spec.py` has the names and types of the format, `io/manifest.py` its table of contents. `writer.py` with `zarr_layout.py` or
`hdf5_store.py` writes through `files.py`, in the order of `journal.py`; `store.py` and `hdf5_store.py` read through `guarded.py`
(checksums) and `structure.py` (the invariants kernels rely on). Change the format in FORMAT.md and `spec.py` first.
"""

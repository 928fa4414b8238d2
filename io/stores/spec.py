"""Names, dtypes and versions of the on-disk format: FORMAT.md as data for readers and writers. Imports nothing."""

FORMAT_VERSION = 2
NEEDS = "0.2.0"  # the first streamcut that reads FORMAT_VERSION; written into every store, for older readers

MANIFEST = "manifest.json"
SHARDS = "shards"
RECIPE = "recipe.json"
FEATURES = "features.npz"
EXTRAS = (RECIPE, FEATURES)  # optional files next to the shards, guarded by the manifest
BACKENDS = ("zarr", "hdf5")
METADATA = "zarr.json"
CHUNK = "c.0"  # the key of the only chunk of an array under separator ".": saves a directory
TRAILER = 4  # bytes of the checksum at the end of a chunk

JOURNAL = "journal"  # a folder in an unfinished store: what was begun, then an entry for each finished shard
SCRATCH = ".scratch"  # in an unfinished store: sorted runs
LOCK = ".lock"

VALUES = ("int8", "float32", "float64")  # from small to large: the first that represents every value of the shard exactly
DTYPES = {
    "data": VALUES,
    "indices": ("int32", "int64"),
    "indptr": ("int32", "int64"),  # written with the type of indices: SciPy requires the same type
    "y": VALUES,
    "qid": ("int64",),
    "weight": VALUES,
}
HDF5_CHUNK_BYTES = 1 << 20

CSR_ATTRIBUTES = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}  # and "shape": [rows, features]
DICT_ATTRIBUTES = {"encoding-type": "dict", "encoding-version": "0.1.0"}

MOST_FEATURES = 1 << 22  # with statistics in the store: computing them takes 128 MiB
SHARD_NNZ = 2 << 20  # 8 MiB per array, of which training reads at four positions at once


def shard_name(shard: int) -> str:
    """`000000`, `000001`, …: six digits or more."""
    return f"{shard:06d}"


def shard_rows(shard_nnz: int) -> int:
    """Most rows in a shard of `shard_nnz` entries, except for a larger group: rows with few entries take memory, too."""
    return max(1, shard_nnz // 4)


def array_size(name: str, rows: int, nnz: int) -> int:
    """Number of elements of array `name` of a shard."""
    if name == "indptr":
        return rows + 1
    return nnz if name in ("data", "indices") else rows

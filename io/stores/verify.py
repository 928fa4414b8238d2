"""Checks every file of a store against its manifest and reports every problem, not only the first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from streamcut.errors import CorruptError
from streamcut.io.features import FeatureTally, feature_statistics
from streamcut.io.manifest import StatisticsBuilder, damaged, fingerprint, guarded_files
from streamcut.io.opening import open_dataset
from streamcut.io.stores.files import files_of
from streamcut.io.stores.spec import FEATURES, MANIFEST, MOST_FEATURES, SHARDS, shard_name
from streamcut.io.stores.store import Store
from streamcut.io.stores.zarr_layout import crc32c

_READING = 16  # small files at once


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The findings of `verify_store`.

    files, bytes   guarded files of the store and their total length
    read_data      whether the content was read, or only lengths and metadata
    problems       one line each; empty for a sound store
    unexpected     files that the manifest does not list: harmless
    """

    path: str
    backend: str = ""
    shards: int = 0
    files: int = 0
    bytes: int = 0
    read_data: bool = False
    problems: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.problems


def verify_store(path: str | os.PathLike, *, read_data: bool) -> VerifyReport:
    """Compare the store at `path` with its manifest.

    Without `read_data`: metadata files byte by byte, all others by existence and length. With it: every byte of every file,
    the structure of every shard, the statistics, and the checksums of the content, of which the fingerprint is made. Raises what
    `open_dataset` raises, except CorruptError, which is reported.
    """
    name = os.fspath(path)
    try:
        data = open_dataset(path, cached=False)
    except CorruptError as error:
        return VerifyReport(name, read_data=read_data, problems=(str(error),))
    manifest, files = data.manifest, files_of(name)
    guarded = guarded_files(manifest)
    sizes = files.sizes(guarded)

    def problem(file: str) -> str | None:
        length, crc = guarded[file]
        if file not in sizes:
            return str(damaged(f"{data.path}/{file}", "missing"))
        if sizes[file] != length:
            return str(damaged(f"{data.path}/{file}", f"is {sizes[file]:,} bytes long, and should be {length:,}"))
        try:
            if crc is not None and (read_data or file.endswith(".json")):
                data.checked(file, length, crc)
        except CorruptError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(_READING) as pool:
        problems = list(filter(None, pool.map(problem, guarded)))
    if fingerprint(manifest.statistics.n_features, manifest.shards) != manifest.fingerprint:
        problems.append(f"{data.path}/{MANIFEST}: its fingerprint is not that of its shards; convert the data again")
    if read_data:
        problems += _content_problems(data)
    return VerifyReport(
        path=name,
        backend=manifest.backend,
        shards=len(manifest.shards),
        files=len(guarded),
        bytes=sum(length for length, _ in guarded.values()),
        read_data=read_data,
        problems=tuple(dict.fromkeys(problems)),
        unexpected=tuple(file for file in files.names() if file not in guarded and file != MANIFEST),
    )


def _content_problems(data: Store) -> Iterator[str]:
    """Read every array of every shard."""
    stated, sound = data.manifest.statistics, True
    buffers, statistics = data.buffers(), StatisticsBuilder()
    kept = FEATURES in data.manifest.extras
    tally = FeatureTally(min(max(stated.n_features, 1), MOST_FEATURES) if kept else 0)
    for shard, info in enumerate(data.manifest.shards):
        try:
            chunk = data.read_arrays(shard, info.arrays, buffers)
            for name, array in info.arrays.items():
                if crc32c(buffers.array(name, array.dtype, array.size)) != array.content_crc32c:
                    what = "its content does not have the checksum that the manifest states"
                    raise damaged(f"{data.path}/{SHARDS}/{shard_name(shard)}/{name}", what)
            if bool(np.all(chunk.data == 1)) != info.ones:
                what = "contradicts the manifest on whether every value is 1"
                raise damaged(f"{data.path}/{SHARDS}/{shard_name(shard)}/data", what)
        except CorruptError as error:
            sound = False
            yield str(error)
            continue
        statistics.add(chunk)
        tally.add(chunk)
    if not sound:
        return
    if statistics.finish(stated.n_features) != stated:
        yield f"{data.path}/{MANIFEST}: its statistics are not those of the rows; convert the data again"
    try:
        if kept and ((computed := tally.finish()) is None or computed.to_bytes() != feature_statistics(data).to_bytes()):
            yield f"{data.path}/{FEATURES}: is not what the rows say; convert the data again"
    except CorruptError as error:
        yield str(error)

"""Checks every file of a store against its manifest and reports every problem, not only the first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from streamcut.errors import CorruptError
from streamcut.io.features import FeatureTally, feature_statistics
from streamcut.io.manifest import StatisticsBuilder, damaged, guarded_files
from streamcut.io.opening import open_dataset
from streamcut.io.stores.files import files_of
from streamcut.io.stores.spec import FEATURES, MANIFEST, MOST_FEATURES, SHARDS, shard_name
from streamcut.io.stores.store import Store

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
    the structure of every shard and the statistics. Raises what `open_dataset` raises, except CorruptError, which is reported.
    """
    name = os.fspath(path)
    try:
        data = open_dataset(path, cached=False)
    except CorruptError as error:
        return VerifyReport(name, read_data=read_data, problems=(str(error),))
    guarded, files = guarded_files(data.manifest), files_of(name)
    sizes, problems = files.sizes(guarded), []
    for file, (length, _) in guarded.items():
        if file not in sizes:
            problems.append(str(damaged(f"{data.path}/{file}", "missing")))
        elif sizes[file] != length:
            problems.append(str(damaged(f"{data.path}/{file}", f"is {sizes[file]:,} bytes long, and should be {length:,}")))
    problems += _content_of_files(data, guarded, read_data)
    if read_data:
        problems += _content_problems(data)
    return VerifyReport(
        path=name,
        backend=data.manifest.backend,
        shards=len(data.manifest.shards),
        files=len(guarded),
        bytes=sum(length for length, _ in guarded.values()),
        read_data=read_data,
        problems=tuple(dict.fromkeys(problems)),
        unexpected=tuple(file for file in files.names() if file not in guarded and file != MANIFEST),
    )


def _content_of_files(data: Store, files: dict[str, tuple[int, int | None]], read_data: bool) -> Iterator[str]:
    """Faults in the content of files with a checksum of the whole file; without `read_data`, of metadata files only."""

    def problem(item: tuple[str, tuple[int, int]]) -> str | None:
        try:
            data.guarded(*item)
        except CorruptError as error:
            return str(error)
        return None

    wanted = [(file, (length, crc)) for file, (length, crc) in files.items() if crc is not None]
    with ThreadPoolExecutor(_READING) as pool:
        yield from filter(None, pool.map(problem, [each for each in wanted if read_data or each[0].endswith(".json")]))


def _content_problems(data: Store) -> Iterator[str]:
    """Read every array of every shard."""
    stated, sound = data.manifest.statistics, True
    buffers, statistics = data.buffers(), StatisticsBuilder()
    kept = FEATURES in data.manifest.extras
    tally = FeatureTally(min(max(stated.n_features, 1), MOST_FEATURES) if kept else 0)
    for shard, info in enumerate(data.manifest.shards):
        try:
            chunk = data.read_arrays(shard, info.arrays, buffers)
        except CorruptError as error:
            sound = False
            yield str(error)
            continue
        if bool(np.all(chunk.data == 1)) != info.ones:
            sound = False
            what = "contradicts the manifest on whether every value is 1"
            yield str(damaged(f"{data.path}/{SHARDS}/{shard_name(shard)}/data", what))
        statistics.add(chunk)
        tally.add(chunk)
    if not sound:
        return
    if statistics.finish(stated.n_features) != stated:
        yield f"{data.path}/{MANIFEST}: its statistics are not those of the rows; convert the data again"
    if kept:
        try:
            stored, found = feature_statistics(data), tally.finish()
        except CorruptError as error:
            yield str(error)
        else:
            if found is None or found.to_bytes() != stored.to_bytes():
                yield f"{data.path}/{FEATURES}: is not what the rows say; convert the data again"

"""What a store under construction consists of, the same on a disk and in object storage:

NAME/journal/000000   the options of what was begun (JSON)
NAME/shards/…         the files of the shards
NAME/journal/000001   an entry once all files of a shard are there: its record, the statistics so far, where to read on
NAME/manifest.json    last; with it NAME is a store, and the journal is removed
"""

from __future__ import annotations

import json
import os
from typing import Any

from streamcut.errors import StreamcutError, UsageError
from streamcut.io.manifest import canonical_json, guarded_files, parse_manifest
from streamcut.io.stores.files import Files, Folder, files_of
from streamcut.io.stores.spec import EXTRAS, JOURNAL, MANIFEST, METADATA, SCRATCH, SHARDS

_PARTS = {MANIFEST, METADATA, *EXTRAS, SHARDS, JOURNAL, SCRATCH}
_SHOWN = 3


def entry(number: int) -> str:
    """The name of an entry; number 0 records the options."""
    return f"{JOURNAL}/{number:06d}"


def is_store(path: str | os.PathLike) -> bool:
    """Whether there is a finished store at `path`."""
    return files_of(path).get(MANIFEST) is not None


def begun(path: str | os.PathLike) -> dict[str, Any]:
    """The options of the unfinished store at `path`; empty when there is none."""
    files = files_of(path)
    records = [] if files.get(MANIFEST) is not None else entries(files, last=0)
    return records[0]["options"] if records else {}


def has_rows(path: str | os.PathLike) -> bool:
    """Whether the unfinished store at `path` has shards to go on from."""
    return files_of(path).get(entry(1)) is not None


def entries(files: Files, last: int | None = None) -> list[dict[str, Any]]:
    """The journal, up to entry number `last` or the first that is missing or damaged."""
    found: list[dict[str, Any]] = []
    while last is None or len(found) <= last:
        try:
            content = files.get(entry(len(found)))
            found.append(json.loads(content or b""))
        except ValueError:
            break
    return found


def check_options(before: dict, options: dict, where: str) -> None:
    """Raise UsageError unless `before` and `options` (JSON types) are the same."""
    differing = [
        f"{key} was {before.get(key)!r} and is {options.get(key)!r}"
        for key in sorted({*before, *options})
        if canonical_json(before.get(key)) != canonical_json(options.get(key))
    ]
    if differing:
        raise UsageError(
            f"{where} was begun differently: {'; '.join(differing)}; use the same options, or start anew without --resume"
        )


def expect_free(path: str | os.PathLike, force: bool) -> None:
    """Raise UsageError when a store may not be written to `path`: one exists (without `force`), or files are not streamcut's."""
    files = files_of(path)
    is_folder = not isinstance(files, Folder) or os.path.isdir(files.root) or not os.path.lexists(files.root)
    names = files.names() if is_folder else {}
    if (MANIFEST in names or not is_folder) and not force:
        raise UsageError(f"{path}: exists; choose another name, or replace it with --force")
    if not is_folder:
        raise UsageError(f"{path}: exists and is not a streamcut store, so --force does not touch it; remove it yourself")
    if foreign := sorted(_foreign(files, names)):
        listed = ", ".join(foreign[:_SHOWN]) + (", …" if len(foreign) > _SHOWN else "")
        raise UsageError(f"{path} holds files not written by streamcut ({listed}); move that away or choose another name")


def _foreign(files: Files, names: dict[str, int]) -> set[str]:
    """The `names` in the folder of a store that are none of its own."""
    if MANIFEST not in names:
        unfinished = entry(0) in names
        temporary = {name for name in names if name.endswith(".tmp") and (unfinished or name.startswith(f"{JOURNAL}/."))}
        return {name for name in names if name.split("/")[0] not in (_PARTS if unfinished else (SCRATCH,))} - temporary
    try:
        own = {MANIFEST, *guarded_files(parse_manifest(files.get(MANIFEST) or b"", MANIFEST))}
    except StreamcutError:
        raise UsageError(
            f"{files.root}: its {MANIFEST} cannot be read by this version, so --force does not touch it; remove it yourself"
        ) from None
    return {name for name in names if name not in own and name.split("/")[0] not in (JOURNAL, SCRATCH)}


def settle(path: str | os.PathLike) -> None:
    """Remove the journal of a finished store, left by a process that ended just then. Raises LockedError."""
    files = files_of(path)
    if files.get(entry(0)) is not None:
        with files.locked():
            remove(files, {name for name in files.names() if name.startswith(f"{JOURNAL}/")})


def discard(path: str | os.PathLike) -> None:
    """Remove the unfinished store at `path`, if there is one. Raises LockedError while a process writes it."""
    if begun(path):
        expect_free(path, force=False)
        files = files_of(path)
        with files.locked():
            remove(files, files.names())


def remove(files: Files, names: dict[str, int] | set[str]) -> None:
    """Remove the files `names` of a store, the first entry of the journal last: it is what shows that the rest is ours."""
    for name in sorted(names, key=lambda name: (name == entry(0), name)):
        files.remove(name)

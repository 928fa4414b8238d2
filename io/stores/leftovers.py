"""What a writer may remove: its own files and those of dead writers. Any other file is the user's and stays.

Known names are those of a store, an unfinished conversion and its sorted runs. A folder with anything else in it, including a
symbolic link or a device, is refused by name.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from streamcut.errors import NotFoundError, UsageError
from streamcut.foundation.files import sync_directory
from streamcut.foundation.opened import IrregularFileError, opened_file, read_file
from streamcut.io.stores.journal import read_journal
from streamcut.io.stores.spec import BUILD, DTYPES, EXTRAS, JOURNAL, LOCK, MANIFEST, PARTIAL, REPLACED, SHARDS

SCRATCH_FOLDER = "scratch"  # inside NAME.partial: sorted runs
_OLD = "old"  # inside NAME.partial: the replaced store, about to be removed
_SHOWN = 3
_BEGIN = b'{"options":'  # start of every journal

_TEMPORARY = r"\.[^/]+\.\d+\.tmp"
_META = r"zarr\.json|\.zgroup|\.zattrs|\.zmetadata|\.zarray"  # of either version of Zarr: other software may have rewritten it
_ARRAYS = "|".join(DTYPES)
STORE_NAMES = (
    rf"(?:(?:{'|'.join(map(re.escape, (MANIFEST, *EXTRAS)))}|{_META}|{_TEMPORARY})"
    rf"|{SHARDS}/(?:{_META}|{_TEMPORARY}|\d{{6,}}\.h5)?"
    rf"|{SHARDS}/\d{{6,}}/(?:{_META}|{_TEMPORARY})?"
    rf"|{SHARDS}/\d{{6,}}/(?:{_ARRAYS})/(?:{_META}|{_TEMPORARY}|c\.0|c/0|c/|0)?)"
)
_RUNS = rf"(?:\d{{6,}}/(?:key|length|{_ARRAYS})?)"
STORE = re.compile(STORE_NAMES)
RUNS = re.compile(_RUNS)
_PARTIAL = rf"{LOCK}|{re.escape(JOURNAL)}|(?:{BUILD}|{_OLD})/{STORE_NAMES}?|{SCRATCH_FOLDER}/{_RUNS}?"
PARTIAL_LAYOUT = re.compile(_PARTIAL)
PROBE = "probe"  # inside NAME.parts: tests that workers see the folder
_PART = rf"\d{{6,}}\.zarr(?:/{STORE_NAMES}?|{re.escape(PARTIAL)}/(?:{_PARTIAL}|journal/\d{{6,}})?)"
PARTS_LAYOUT = re.compile(rf"{PROBE}|{_PART}")


def expect_ours(root: Path, known: re.Pattern[str]) -> None:
    """Raise UsageError, with some of their names, when there are files below the folder `root` whose names are not `known`."""
    if root.is_symlink() or not root.is_dir():
        raise UsageError(f"{root} is not a folder made by streamcut; move it away or choose another name")
    found = list(islice(_foreign(root, "", known), _SHOWN + 1))
    if found:
        names = ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
        raise UsageError(f"{root} holds files not written by streamcut ({names}); move that away or choose another name")


def expect_known_names(root: str, names: Iterable[str], known: re.Pattern[str]) -> None:
    """Raise UsageError, with some of them, when not all `names` of objects below the URL `root` are `known`."""
    found = list(islice((name for name in sorted(names) if not known.fullmatch(name)), _SHOWN + 1))
    if found:
        listed = ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
        raise UsageError(f"{root} holds files not written by streamcut ({listed}); move that away or choose another name")


def _foreign(folder: Path, prefix: str, known: re.Pattern[str]) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False) and known.fullmatch(name + "/"):
                yield from _foreign(Path(entry.path), name + "/", known)
            elif not (entry.is_file(follow_symlinks=False) and known.fullmatch(name)):
                yield name


def expect_replaceable(path: Path, force: bool) -> None:
    """Raise UsageError when NAME exists and may not be replaced: without `force`, or because it holds more than a store."""
    if not os.path.lexists(path):
        return
    if not force:
        raise UsageError(f"{path}: exists; choose another name, or replace it with --force")
    if not (path / MANIFEST).is_file():
        raise UsageError(f"{path}: exists and is not a streamcut store, so --force does not touch it; remove it yourself")
    expect_ours(path, STORE)
    Replaced(path).expect_none()


def remove(root: Path, known: re.Pattern[str]) -> None:
    """Remove the folder `root`, which holds only `known` names. Raises UsageError when it holds others."""
    expect_ours(root, known)
    for folder, _, files in os.walk(root, topdown=False):
        place = os.path.relpath(folder, root)
        for file in files:
            if known.fullmatch(os.path.normpath(os.path.join(place, file))):  # files added since then stay, and their folder
                os.unlink(os.path.join(folder, file))
        os.rmdir(folder)


def lock_of(partial: Path) -> Path:
    """The lock file for writing NAME.partial."""
    return partial / LOCK


def expect_partial(partial: Path) -> None:
    """Raise UsageError unless `partial` (NAME.partial) does not exist, or was left by an interrupted writer."""
    if not os.path.lexists(partial):
        return
    expect_ours(partial, PARTIAL_LAYOUT)
    lock, journal = lock_of(partial), partial / JOURNAL
    if lock.exists() and lock.stat().st_size:
        raise UsageError(f"{lock} was not made by streamcut; move it away or choose another name")
    if journal.exists():
        try:
            with opened_file(journal) as file:
                begin = file.read(len(_BEGIN))
        except IrregularFileError as error:
            raise NotFoundError(f"{journal}: {error.strerror}; move it away, or choose another name") from None
        if not _BEGIN.startswith(begin):
            raise UsageError(f"{journal} was not written by streamcut; move it away or choose another name")


def remove_partial(partial: Path) -> None:
    """Remove NAME.partial; raises as `expect_partial`."""
    expect_partial(partial)
    remove(partial, PARTIAL_LAYOUT)


def _manifest_digest(store: Path) -> str:
    """SHA-256 of the manifest; empty when there is none."""
    try:
        return hashlib.sha256(read_file(store / MANIFEST)).hexdigest()
    except OSError:
        return ""


class Replaced:
    """NAME.replaced: the old NAME, during the moment in which --force replaces it.

    Before this rename the journal records its folder (by inode) and its store (by the SHA-256 of the manifest, because copied or
    restored folders get other inodes), so that another folder of the same name is never mistaken for it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._aside = path.with_name(path.name + REPLACED)
        self._journal = path.with_name(path.name + PARTIAL) / JOURNAL

    def record(self) -> dict:
        """The journal's record before NAME is moved aside."""
        return {"replacing": [os.stat(self._path).st_ino, _manifest_digest(self._path)]}

    def is_ours(self) -> bool:
        """Whether NAME.replaced was moved aside by a dead writer."""
        if self._aside.is_symlink() or not self._aside.is_dir():
            return False
        inode, digest = os.stat(self._aside).st_ino, _manifest_digest(self._aside)
        still = _manifest_digest(self._path)  # if NAME was not moved, NAME.replaced is a user's copy of it
        replacing = [record["replacing"] for record, _ in read_journal(self._journal) if "replacing" in record]
        return any(inode == theirs or (digest == its and digest != still) for theirs, its in replacing)

    def expect_none(self) -> None:
        """Raise UsageError when a NAME.replaced exists that is not ours and blocks the rename."""
        if os.path.lexists(self._aside) and not self.is_ours():
            raise UsageError(f"{self._aside} is in the way and was not made by streamcut; move it away or choose another name")

    def move(self) -> None:
        """Rename NAME to NAME.replaced."""
        os.replace(self._path, self._aside)

    def settle(self, *, back: bool) -> None:
        """Remove our NAME.replaced if a new NAME exists. If none does and `back`, rename it back."""
        if not self.is_ours():
            return
        if os.path.lexists(self._path):
            expect_ours(self._aside, STORE)
            doomed = self._journal.parent / _OLD  # recognised there as ours even when partly removed
            if doomed.exists():
                remove(doomed, STORE)
            os.rename(self._aside, doomed)
            for folder in (doomed.parent, self._path.parent):
                sync_directory(folder)
            remove(doomed, STORE)
        elif back:
            os.replace(self._aside, self._path)
            sync_directory(self._path.parent)

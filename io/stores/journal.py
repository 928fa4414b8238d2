"""The journal of a conversion: one line of JSON and checksum per finished shard, synced before the next one begins."""

from __future__ import annotations

import json
import os

from streamcut.errors import CorruptError, NotFoundError, UsageError
from streamcut.foundation.files import disk_full, failpoint
from streamcut.foundation.opened import IrregularFileError, read_file, readable
from streamcut.io.stores.codec import crc32c
from streamcut.io.stores.manifest_file import canonical_json


def read_journal(path: str | os.PathLike) -> list[tuple[dict, int]]:
    """The records of a journal, each with the offset at which its line ends.

    Reading stops before the first torn or damaged line: its shard was not finished. A missing file has no records.
    """
    try:
        content = read_file(path)
    except FileNotFoundError:
        return []
    except IrregularFileError as error:
        raise NotFoundError(f"{path}: {error.strerror}; move it away, or choose another name") from None
    with readable(path, CorruptError, "not the journal of a conversion"):
        return read_lines(content)


def read_lines(content: bytes) -> list[tuple[dict, int]]:
    """The records in the content of a journal, as `read_journal` returns them."""
    records, end = [], 0
    for line in content.splitlines(keepends=True):
        body, _, crc = line.rpartition(b" ")
        if crc != b"%08x\n" % crc32c(body):
            break
        end += len(line)
        records.append((json.loads(body), end))
    return records


def journal_line(record: dict) -> bytes:
    """`record` (JSON types) and its checksum."""
    body = canonical_json(record)
    return body + b" %08x\n" % crc32c(body)


class Journal:
    """Appends records durably after the first `keep` bytes of the file. Failpoint convert.journal: before write and fsync."""

    def __init__(self, path: str | os.PathLike, keep: int) -> None:
        self._path = path
        with disk_full(path):
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115  closed by close()
            self._file.truncate(keep)
            os.fsync(self._file.fileno())

    def append(self, record: dict) -> None:
        line = memoryview(journal_line(record))
        with disk_full(self._path, len(line)):
            failpoint("convert.journal")
            while line:
                line = line[self._file.write(line) :]
            failpoint("convert.journal")
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def check_options(begun: dict, options: dict, where: str) -> None:
    """Raise UsageError unless `begun` and `options` (JSON types) are the same."""
    differing = [
        f"{key} was {begun.get(key)!r} and is {options.get(key)!r}"
        for key in sorted({*begun, *options})
        if canonical_json(begun.get(key)) != canonical_json(options.get(key))
    ]
    if differing:
        raise UsageError(
            f"{where} was begun differently: {'; '.join(differing)}; use the same options, or start anew without --resume"
        )

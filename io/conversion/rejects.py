"""NAME.rejects: the lines left out by `--on-error skip`, each below a comment with the reason."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

from streamcut.errors import NotFoundError, UsageError
from streamcut.foundation.files import disk_full
from streamcut.foundation.opened import opened_file
from streamcut.io.places.outputs import output
from streamcut.io.text.svmlight import Reject

_BEGIN = re.compile(rb"# .*:\d+:\d+: ")


class RejectsFile:
    """Collected in NAME.rejects.partial until all lines are read. Corrected lines can be converted; the comments are skipped.

    Without refused lines no file is touched. Raises UsageError when NAME.rejects exists and `replace` is not given, or when
    a file of either name is not ours.
    """

    def __init__(self, store: str, *, wanted: bool, replace: bool) -> None:
        self.final = Path(store + ".rejects")
        self.draft = Path(store + ".rejects.partial")
        self._wanted = wanted
        if wanted and os.path.lexists(self.final) and not replace:
            raise UsageError(f"{self.final}: exists; move it away, or replace it with --force")
        for path in (self.final, self.draft) if wanted else ():
            if os.path.lexists(path) and not _is_ours(path):
                raise UsageError(f"{path}: was not written by streamcut; move it away or choose another output")
        self._file: io.FileIO | None = None
        self._begun = 0  # refused lines of an earlier run
        self._ends = [0]  # length of the file after each line
        self._durable = 0

    def begin(self, count: int, length: int) -> None:
        """Keep the first `count` lines that an earlier run collected, in `length` bytes. NotFoundError: they are gone."""
        if length and (not self.draft.exists() or self.draft.stat().st_size < length):
            raise NotFoundError(f"{self.draft}: the lines refused before the interruption are gone; start over with --force")
        with disk_full(self.draft):
            self._file = open(self.draft, "ab", buffering=0)  # noqa: SIM115  closed by close()
            self._file.truncate(length)
        self._begun, self._ends, self._durable = count, [length], length

    def add(self, reject: Reject) -> None:
        entry = f"# {reject.file}:{reject.line}:{reject.reason}\n".encode() + reject.raw.rstrip(b"\r\n") + b"\n"
        view = memoryview(entry)
        assert self._file is not None, "begin comes first"
        with disk_full(self.draft, len(entry)):
            while view:
                view = view[self._file.write(view) :]
        self._ends.append(self._ends[-1] + len(entry))

    def length(self, count: int) -> int:
        """Bytes of the first `count` refused lines, which are flushed to disk."""
        length = self._ends[count - self._begun]
        if length > self._durable and self._file is not None:
            os.fsync(self._file.fileno())
            self._durable = self._ends[-1]
        return length

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def discard(self) -> None:
        """Remove the draft."""
        self.close()
        if self._wanted:
            self.draft.unlink(missing_ok=True)

    def publish(self) -> bool:
        """Copy the lines to the final name; returns whether there were any. A file of an earlier conversion is removed."""
        if self.draft.stat().st_size == 0:
            self.final.unlink(missing_ok=True)
            return False
        with opened_file(self.draft) as draft, output(self.final, prefix="convert.rejects") as file:
            while piece := draft.read(1 << 20):
                file.write(piece)
        return True


def _is_ours(path: Path) -> bool:
    """Whether `path` begins like a rejects file, or is empty."""
    if path.is_symlink() or not path.is_file():
        return False
    with opened_file(path) as file:
        head = file.read(1 << 16)
    return not head or _BEGIN.match(head) is not None

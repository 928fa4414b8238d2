"""What a checkpoint keeps of an object: attributes by name, written and read back by one schema (streamcut.models.packing)."""

from __future__ import annotations

from typing import cast

import numpy as np

from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.models.packing import packed, unpacked


class Kept:
    """An object of which checkpoints keep the attributes `kept`, in this order: arrays, parts of which something is kept, and
    whatever `packed` takes.

    resized  arrays of any shape; they are read into new ones, all others in place, where dtype and shape must be the same
    """

    kept: tuple[str, ...]
    resized: tuple[str, ...] = ()

    def saved(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        """(JSON types, arrays) of a checkpoint; arrays are views."""
        record, arrays = dict[str, object](), dict[str, np.ndarray]()
        for name in self.kept:
            value = getattr(self, name)
            if isinstance(value, Kept):
                record[name], more = value.saved()
                arrays |= {f"{name}.{inner}": array for inner, array in more.items()}
            else:
                record[name] = packed(value, name, arrays)
        return record, arrays

    def restore(self, record: dict[str, object], stored: StoredCheckpoint) -> None:
        """Resume from what `saved` returned; `stored` has the arrays."""
        for name in self.kept:
            now = getattr(self, name)
            if isinstance(now, Kept):
                now.restore(cast("dict[str, object]", record[name]), stored.inside(name))
            elif isinstance(now, np.ndarray) and name not in self.resized:
                stored.fill(name, now, self.release)
            else:
                setattr(self, name, unpacked(record[name], stored))

    def release(self) -> None:
        """Release the pages of arrays that live in scratch files; the others stay in memory."""

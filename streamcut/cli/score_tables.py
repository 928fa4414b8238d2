"""Predictions as tables: CSV or Parquet, together with columns of the input."""

from __future__ import annotations

import io
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamcut.foundation.shown import visible

if TYPE_CHECKING:
    from streamcut.models.model import Model

PARQUET = "parquet"


class AnswerTable:
    """Writes predictions, batch by batch: the columns kept, then `label`, `score` (one per class) and `probability` as requested.

    kind   "csv" or "parquet"
    what   "labels", "scores", "both", "probabilities"; "certified": labels and, instead of
           scores, what is proved about them: columns proved, low, high
    kept   batches with columns of the input, in row order; empty for input without such columns
    rows   number of rows per call
    """

    rows = 1 << 17

    def __init__(self, file: Any, kind: str, model: Model, what: str, kept: deque[pa.RecordBatch]) -> None:
        self._kind, self._model, self._what = kind, model, what
        self._kept = kept
        self._writer: Any = None
        self._stream = _Stream(file)

    def __call__(self, labels: np.ndarray, scores: np.ndarray) -> None:
        """Add rows: labels float64 (n,), scores float64 (n,) or (n, classes)."""
        columns: dict[str, Any] = {}
        if self._kept:
            kept = _taken(self._kept, len(labels))
            columns = dict(zip(kept.schema.names, kept.columns, strict=True))
        for name, values in self._answers(labels, scores).items():
            columns[name if name not in columns else f"{name}_"] = values
        batch = pa.record_batch(columns)
        if self._writer is None:
            self._writer = _writer(self._stream, self._kind, batch.schema)
        self._writer.write_batch(batch.cast(self._writer.schema) if self._kind == PARQUET else batch)

    def close(self) -> None:
        """Write the rest; without rows nothing is written."""
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        """Write nothing more: Arrow would finish its file when the writer is collected, after the file was closed."""
        self._stream.abandoned = True

    def _answers(self, labels: np.ndarray, scores: np.ndarray) -> dict[str, pa.Array]:
        model, what, found = self._model, self._what, {}
        if what not in ("scores", "probabilities"):
            found["label"] = pa.array(model.in_label_words(labels))
        if what == "certified":
            return found | {"proved": pa.array(scores[:, 0] > 0.0), "low": pa.array(scores[:, 1]), "high": pa.array(scores[:, 2])}
        if what in ("scores", "both"):
            found |= self._by_class("score", scores)
        if what == "probabilities":
            found |= self._by_class("probability", model.probabilities_of(scores))
        return found

    def _by_class(self, name: str, values: np.ndarray) -> dict[str, pa.Array]:
        if values.ndim == 1:
            return {name: pa.array(values)}
        classes = self._model.in_label_words(np.array(self._model.labels)).tolist()  # type: ignore[attr-defined]
        spelled = [word if isinstance(word, str) else f"{word:g}" for word in classes]
        return {f"{name}_{word}": pa.array(column) for word, column in zip(spelled, values.T, strict=True)}


def _writer(stream: _Stream, kind: str, schema: pa.Schema) -> Any:
    if kind == PARQUET:
        import pyarrow.parquet as pq

        plain = [field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema]
        return pq.ParquetWriter(pa.PythonFile(stream, mode="w"), pa.schema(plain))
    import pyarrow.csv as pcsv

    return pcsv.CSVWriter(pa.PythonFile(stream, mode="w"), schema)


class _Stream(io.RawIOBase):
    """A file for Arrow: writes to `file`, but does not close it. Once `abandoned` it drops further writes.

    Files and pipes get columns unchanged. On a terminal escape codes are made visible.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._terminal = file is sys.stdout.buffer and sys.stdout.isatty()
        self.abandoned = False

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        if not self.abandoned:
            self._file.write(_shown(bytes(data)) if self._terminal else bytes(data))
        return len(data)


def _shown(data: bytes) -> bytes:
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    return "\n".join(visible(line) for line in lines).encode()


def _taken(batches: deque[pa.RecordBatch], rows: int) -> pa.RecordBatch:
    """The first `rows` rows of `batches`, which are removed."""
    parts = []
    while rows:
        batch = batches.popleft()
        if batch.num_rows > rows:
            batches.appendleft(batch.slice(rows))
            batch = batch.slice(0, rows)
        parts.append(batch)
        rows -= batch.num_rows
    return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]

"""How well sequences are labelled: rows, whole sequences and, for labels in the IOB scheme, chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk
from streamcut.models.model import Model


class SequenceMeasures:
    """Row weights do not count here.

    names  of labels: {1.0: "B-NP", …}; with them precision, recall and F₁ of chunks are measured, as in CoNLL-2000: overall,
           and for each type
    """

    row_bytes: ClassVar[tuple[int, int]] = (0, 0)
    to_choose: ClassVar[tuple[str, ...]] = ("accuracy", "sequence_accuracy")
    losses: ClassVar[tuple[str, ...]] = ()

    def __init__(self, model: Model, names: Mapping[float, str] | None = None) -> None:
        self._model = model
        self._names = names
        self._rows = self._right = self._sequences = self._whole = 0
        self._predicted, self._true, self._both = (Counter[str]() for _ in range(3))  # chunks, by their type

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take whole sequences and their scores. Raises BadInputError for a label without a name if there are names."""
        predicted, starts = self._model.labels_of_chunk(chunk, scores), self._model.starts(chunk)
        right = predicted == chunk.y
        self._rows += chunk.n_rows
        self._right += int(right.sum())
        self._sequences += len(starts) - 1
        self._whole += int(np.logical_and.reduceat(right, starts[:-1]).sum())
        if self._names is not None:
            proposed, true = (self._chunks(labels, starts) for labels in (predicted, chunk.y))
            for counts, chunks in ((self._predicted, proposed), (self._true, true), (self._both, proposed & true)):
                counts.update(kind for _, _, kind in chunks)

    def measures(self) -> dict[str, object]:
        measured: dict[str, object] = {
            "accuracy": self._right / self._rows if self._rows else None,
            "sequence_accuracy": self._whole / self._sequences if self._sequences else None,
            "rows": self._rows,
            "sequences": self._sequences,
        }
        if self._names is not None:
            whole = _of_chunks(*(counts.total() for counts in (self._predicted, self._true, self._both)))
            measured |= {f"chunk_{name}": value for name, value in whole.items()}
            kinds = sorted(self._predicted.keys() | self._true.keys())
            counted = {kind: (self._predicted[kind], self._true[kind], self._both[kind]) for kind in kinds}
            measured["chunk_types"] = [{"type": kind, **_of_chunks(*counts)} for kind, counts in counted.items()]
        return measured

    def _chunks(self, labels: np.ndarray, starts: np.ndarray) -> set[tuple[int, int, str]]:
        """(first row, last row + 1, kind) of all chunks: B-x starts a chunk, and so does I-x that does not follow B-x or I-x."""
        assert self._names is not None
        chunks, first_of_sequence = set(), set(starts[:-1].tolist())
        begun: tuple[int, str] | None = None
        for row, label in enumerate(labels.tolist()):
            if label not in self._names:
                raise BadInputError(f"label {label:g} has no name")
            part, _, kind = self._names[label].partition("-")
            goes_on = begun is not None and part == "I" and kind == begun[1] and row not in first_of_sequence
            if not goes_on:
                if begun is not None:
                    chunks.add((begun[0], row, begun[1]))
                begun = (row, kind) if kind else None
        if begun is not None:
            chunks.add((begun[0], len(labels), begun[1]))
        return chunks


def _of_chunks(predicted: int, true: int, both: int) -> dict[str, object]:
    """F₁, precision, recall and the number of true chunks, from the numbers predicted, true, and both."""
    return {
        "f1": 2 * both / (predicted + true) if predicted + true else None,
        "precision": both / predicted if predicted else None,
        "recall": both / true if true else None,
        "count": true,
    }

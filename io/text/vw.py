"""Vowpal Wabbit's text as rows: `label importance 'tag|namespace:scale feature:value …`.

The key of a feature is `namespace^feature`, or `feature` in the namespace without a name, as VW's audit prints them. It becomes a
feature by hashing (MurmurHash3, the columns of scikit-learn's FeatureHasher; not VW's) or by a dictionary. The same feature
twice in a row adds up. Importances are read if the very first row has one; rows without one then have 1. Only single labels are
read: no `class:cost`, no multi-line examples.
"""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from streamcut.errors import BadInputError, MemoryBudgetError, UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.recipe.recipe import LabelRule, Recipe
from streamcut.io.rows import take_rows
from streamcut.io.sources.canonical import RawRows, RowRules, canonical
from streamcut.io.sources.source import Sizes
from streamcut.io.tables.keys import KeyColumn, Keys, Words, coded
from streamcut.io.text import kernels as svmlight
from streamcut.io.text import vw_kernels as k
from streamcut.io.text.blocks import BOM, RawBlock, TextSource, read_blocks, until_known

if TYPE_CHECKING:
    from streamcut.io.formats.registry import Format, Raw

_BYTES = 160  # of memory per byte of text: keys and rows
_SMALLER = 4  # divides blocks, a byte of which takes that much more than one of svmlight
_DTYPE = "float32"  # of values, by default
_REASONS = {  # {} is the token
    k.NO_LABEL: "no label before the bar (a word that touches it is a tag); --missing-labels=skip leaves such rows out, "
    "--label=none takes all rows to be scored",
    k.BAD_LABEL: "label {}",
    k.BAD_WEIGHT: "importance {}",
    k.NEGATIVE: "importance {} is negative",
    k.UNWEIGHTED: "an importance, but the first row has none; give it the importance 1",
    k.PREDICTION: "{} is an initial prediction, which is not supported; remove it",
    k.NAMELESS: "a feature without a name",
    k.BAD_VALUE: "value {}",
    k.BAD_SCALE: "scale of a namespace {}",
}
_LABELS = {"error": k.READ, "skip": k.SKIP}


class VwSource(TextSource):
    """Source over Vowpal Wabbit files. A resumed run reads them from the beginning."""

    rereads = True

    def __init__(self, paths: list[str], options: ConvertOptions, block_bytes: int = 1 << 19, most_bytes: int = 1 << 26) -> None:
        self.options, self._block_bytes, self._most = options, block_bytes, max(most_bytes, block_bytes)
        super().__init__(paths)
        self.counters: Counter[str] = Counter()
        recipe = options.recipe
        bits, names = (options.hash_bits, ()) if recipe is None else (recipe.hash_bits, recipe.names or ())
        self._dtype = options.dtype or (recipe and recipe.dtype) or _DTYPE
        self._learn = recipe is None and bits is None
        self._keys = Keys(names, bits=bits, most=options.max_categories if self._learn else 0)
        self.n_features = None if self._learn else len(self._keys)
        self._labels = k.NONE if options.labels == "none" else _LABELS[options.missing_labels]
        self._weights, self._key_bytes = k.UNKNOWN, 2  # bytes of keys, namespaces in front of them, per byte of text

    @classmethod
    def open(cls, form: Format, paths: list[str], options: ConvertOptions, scratch: str) -> Self:
        if options.labels not in (None, "none"):
            raise UsageError(
                "--label: VW text has its labels in the rows; only none, for rows that are to be scored, means something"
            )
        return cls(paths, options)

    @classmethod
    def scoring(cls, form: Format, paths: list[str], recipe: Recipe, raw: Raw) -> Self:
        if recipe.form != "vw":
            raise BadInputError(f"{paths[0]}: Vowpal Wabbit's text, but the model takes {recipe.in_words()}")
        raw.expect_no_columns("Vowpal Wabbit's text has no columns")
        labels = None if raw.labelled else "none"
        return cls(paths, ConvertOptions(labels=labels, missing_labels=raw.missing_labels, recipe=recipe))

    def begin(self, sizes: Sizes) -> None:
        self._block_bytes = sizes.block // _SMALLER
        self._most = self._block_bytes + sizes.row // _BYTES
        self._keys.room = sizes.keys

    def recipe(self) -> Recipe:
        if self.options.recipe is not None:
            return self.options.recipe
        bits = self._keys.bits
        names = self._keys.names() if bits is None else None
        rule = LabelRule(none=self._labels == k.NONE)
        return Recipe("vw", bits, dtype=self._dtype, duplicates="sum", labels=rule, names=names)

    def blocks(self, start: dict | None = None) -> Generator[tuple[Chunk, dict]]:
        """See Source; `start` is ignored."""
        self.counters = Counter()
        free: queue.SimpleQueue[RawBlock | None] = queue.SimpleQueue()
        free.put(RawBlock(self._block_bytes, svmlight.PADDING))
        first_row, line = 0, 0
        with closing(read_blocks(self.inputs, 0, 0, free, self._most)) as reading:
            for raw in reading:
                name = self.inputs[raw.file].name
                if raw.too_long:
                    raise MemoryBudgetError(f"{name}:{line + 1}: the line has more than {raw.stop:,} bytes; raise --memory")
                place = {"file": raw.file, "given": first_row, "counters": dict(self.counters), "taken": raw.taken}
                chunk, lines = self._chunk(raw, name, line, first_row)
                line = 0 if raw.last else line + lines
                free.put(raw)
                if chunk is not None and chunk.n_rows:
                    yield chunk, place
                    first_row += chunk.n_rows

    def _chunk(self, raw: RawBlock, name: str, line: int, first_row: int) -> tuple[Chunk | None, int]:
        """(rows, lines) of a block whose first line is number `line` (0-based) of the file."""
        if raw.offset == 0 and raw.text.startswith(BOM):
            raw.array[: len(BOM)] = ord(" ")
        out, cursor = self._parsed(raw.array, raw.stop + raw.unterminated, raw.text)
        rows, entries = int(cursor[k.ROW]), int(cursor[k.ENTRY])
        if code := int(cursor[k.CODE]):
            token = bytes(raw.text[cursor[k.TOKEN] : cursor[k.END]])
            raise BadInputError(f"{name}:{line + cursor[k.LINE] + 1}: {self._reason(code, token, out.values[entries])}")
        self._weights = int(cursor[k.WEIGHTS])
        lines = int(cursor[k.LINE])
        if rows == 0:
            return None, lines
        indptr, values = out.indptr[: rows + 1], out.values[:entries]
        row_of = np.repeat(np.arange(rows), np.diff(indptr))
        features = self._features(out, entries, row_of, name)
        if (features < 0).any():  # unknown to the recipe
            kept = features >= 0
            self.counters["features that training did not see"] += int((~kept).sum())
            indptr = np.concatenate([[0], np.cumsum(np.bincount(row_of[kept], minlength=rows))])
            features, values = features[kept], values[kept]
        weight = out.weight[:rows] if self._weights == k.WEIGHTED else None
        rules = RowRules(self._dtype, "sum", self.options.keep_zeros, self.n_features)
        raw_rows = RawRows(indptr, features, values, out.y[:rows], None, weight)
        chunk = canonical(raw_rows, rules, self.counters, name, first_row, line + int(cursor[k.FIRST]))
        unlabelled = np.isnan(chunk.y)
        if unlabelled.any():
            self.counters["rows without label left out"] += int(unlabelled.sum())
            chunk = take_rows(chunk, np.flatnonzero(~unlabelled))
        return chunk, lines

    def _parsed(self, array: np.ndarray, stop: int, text: bytearray) -> tuple[k.KeyedRows, np.ndarray]:
        """(the rows of text[:stop], the cursor after them)."""
        rows, entries = text.count(b"\n", 0, stop), sum(text.count(mark, 0, stop) for mark in (b" ", b"\t", b"|"))
        y, weight, values = (np.empty(most) for most in (rows, rows, entries + 1))
        indptr, key_ends = (np.empty(most + 1, np.int64) for most in (rows, entries))
        cursor, pending, single = np.zeros(k.CURSOR, np.int64), np.empty((stop // 20 + 1, 2), np.int64), self._dtype == "float32"
        while True:
            out = k.KeyedRows(y, weight, indptr, values, np.empty(self._key_bytes * stop, np.uint8), key_ends)
            cursor[:], cursor[k.WEIGHTS] = 0, self._weights
            until_known(
                lambda *tokens: k.parse(array, stop, self._labels, single, out, cursor, pending, *tokens),  # noqa: B023
                cursor,
                pending,
                lambda start, end: float(text[start:end]),
            )
            if cursor[k.CODE] != k.FULL:
                return out, cursor
            self._key_bytes *= 2

    def _reason(self, code: int, token: bytes, value: float) -> str:
        """Why a line was refused with `code`."""
        if code == k.TOO_LARGE:
            more = "" if self._dtype == "float64" else "; use --dtype=float64"
            return f"value {value} does not fit {self._dtype}{more}"
        reason = _REASONS[code].format(repr(token.decode("utf-8", "surrogateescape")))
        if code == k.NEGATIVE:
            return _REASONS[code].format(f"{float(token):g}")
        if code not in (k.BAD_LABEL, k.BAD_WEIGHT, k.BAD_VALUE, k.BAD_SCALE):
            return reason
        try:
            finite = np.isfinite(float(token))
        except ValueError:
            finite = True
        return f"{reason} {'is not a number' if finite else 'is not finite'}"

    def _features(self, out: k.KeyedRows, entries: int, row_of: np.ndarray, name: str) -> np.ndarray:
        if self._keys.bits is not None:  # which takes less time than finding the distinct ones
            return self._keys.hashed(out.keys, out.key_ends[:entries], out.key_ends[1 : entries + 1], "")
        words = Words(*coded(_texts(out.keys, out.key_ends, entries)))
        columns = [KeyColumn("", words, rows=row_of)]
        numbers = self._keys.learn(columns, name)[0] if self._learn else self._keys.find(words.words)
        return numbers[words.codes]


def _texts(data: np.ndarray, ends: np.ndarray, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.large_string(), count, [None, pa.py_buffer(ends[: count + 1]), pa.py_buffer(data)])

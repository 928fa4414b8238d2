"""Vowpal Wabbit's text as rows: `label importance 'tag|namespace:scale feature:value …`.

The key of a feature is `namespace^feature`, or `feature` in the namespace without a name, as VW's audit prints them. It becomes a
feature by hashing (MurmurHash3, the columns of scikit-learn's FeatureHasher; not VW's own) or by a dictionary. The same feature
twice in a row adds up. Importances are read if the very first row has one; rows without one then have 1. Only single labels are
read: no `class:cost`, no multi-line examples.
"""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.errors import BadInputError, MemoryBudgetError, UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.io.recipe.recipe import LabelRule, Recipe
from streamcut.io.rows import take_rows
from streamcut.io.sources.canonical import RawRows, RowRules, canonical
from streamcut.io.sources.source import Sizes
from streamcut.io.tables.keys import KeyColumn, Keys, NoRoomForKeysError, TooManyKeysError, Words, coded
from streamcut.io.text import kernels as svmlight
from streamcut.io.text import vw_kernels as k
from streamcut.io.text.blocks import BOM, RawBlock, TextSource, read_blocks

if TYPE_CHECKING:
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.formats.registry import Format, Raw

_NO_LABEL = (
    "no label before the bar (a word that touches it is a tag); --missing-labels=skip leaves such rows out, --label=none takes "
    "all rows to be scored"
)
_BYTES = 160  # of memory per byte of text: tokens, keys and rows
_SMALLER = 4  # divides blocks, a byte of which takes that much more than one of svmlight


@dataclass(frozen=True, slots=True)
class VwOptions:
    """How text is read; the fields are options of `convert`.

    labels   "read", "skip": rows without one are left out, or "none": they are not read
    recipe   the features of another conversion; otherwise they are hashed (hash_bits), or numbered as they occur
    """

    labels: str = "read"
    hash_bits: int | None = None
    max_categories: int = 250_000
    dtype: str = "float32"
    keep_zeros: bool = False
    recipe: Recipe | None = None


class _Wrong:
    """The first refused line so far, and the reason."""

    def __init__(self) -> None:
        self.line, self.what = -1, ""

    def add(self, flags: np.ndarray, lines: np.ndarray, what: Callable[[int], str]) -> None:
        """Take the first of the items, on these lines, that have a flag, unless an earlier line is refused."""
        if flags.any():
            first = int(np.argmax(flags))
            if self.line < 0 or lines[first] < self.line:
                self.line, self.what = int(lines[first]), what(first)


class VwSource(TextSource):
    """Source over Vowpal Wabbit files. A resumed run reads them from the beginning."""

    rereads = True

    def __init__(self, paths: list[str], options: VwOptions, block_bytes: int = 1 << 19, most_bytes: int = 1 << 26) -> None:
        self.options, self._block_bytes, self._most = options, block_bytes, max(most_bytes, block_bytes)
        super().__init__(paths)
        self.counters: Counter[str] = Counter()
        bits = options.hash_bits if options.recipe is None else options.recipe.hash_bits
        known = () if options.recipe is None else options.recipe.names or ()
        self._learn = options.recipe is None and bits is None
        self._keys = Keys(known, bits=bits, most=options.max_categories if self._learn else 0)
        self.n_features = None if self._learn else len(self._keys)
        self._weighted: bool | None = None  # whether rows have importances, as the first row does

    @classmethod
    def open(cls, form: Format, paths: list[str], options: ConvertOptions, scratch: str) -> Self:
        if options.labels not in (None, "none"):
            raise UsageError(
                "--label: VW text has its labels in the rows; only none, for rows that are to be scored, means something"
            )
        labels = "none" if options.labels == "none" else "skip" if options.missing_labels == "skip" else "read"
        dtype = options.dtype or (None if options.recipe is None else options.recipe.dtype) or "float32"
        return cls(paths, VwOptions(labels, options.hash_bits, options.max_categories, dtype, options.keep_zeros, options.recipe))

    @classmethod
    def scoring(cls, form: Format, paths: list[str], recipe: Recipe, raw: Raw) -> Self:
        if recipe.form != "vw":
            raise BadInputError(f"{paths[0]}: Vowpal Wabbit's text, but the model takes {recipe.in_words()}")
        raw.expect_no_columns("Vowpal Wabbit's text has no columns")
        labels = "none" if not raw.labelled else "skip" if raw.missing_labels == "skip" else "read"
        return cls(paths, VwOptions(labels, dtype=recipe.dtype or "float32", recipe=recipe))

    def begin(self, sizes: Sizes) -> None:
        self._block_bytes = sizes.block // _SMALLER
        self._most = self._block_bytes + sizes.row // _BYTES
        self._keys.room = sizes.keys

    def recipe(self) -> Recipe:
        if self.options.recipe is not None:
            return self.options.recipe
        bits = self._keys.bits
        names = self._keys.names() if bits is None else None
        rule = LabelRule(none=self.options.labels == "none")
        return Recipe("vw", bits, dtype=self.options.dtype, duplicates="sum", labels=rule, names=names)

    def blocks(self, start: dict | None = None) -> Iterator[tuple[Chunk, dict]]:
        """See Source; `start` is ignored."""
        self.counters = Counter()
        free: queue.SimpleQueue[RawBlock | None] = queue.SimpleQueue()
        free.put(RawBlock(self._block_bytes, svmlight.PADDING))
        given, line = 0, 0
        with closing(read_blocks(self.inputs, 0, 0, free, self._most)) as reading:
            for raw in reading:
                name = self.inputs[raw.file].name
                if raw.too_long:
                    raise MemoryBudgetError(f"{name}:{line + 1}: the line has more than {raw.stop:,} bytes; raise --memory")
                place = {"file": raw.file, "offset": raw.offset, "given": given, "counters": dict(self.counters)}
                chunk, lines = self._chunk(raw, name, line, given)
                line = 0 if raw.last else line + lines
                free.put(raw)
                if chunk is not None and chunk.n_rows:
                    yield chunk, place
                    given += chunk.n_rows

    def _chunk(self, raw: RawBlock, name: str, line: int, given: int) -> tuple[Chunk | None, int]:
        """(rows, lines) of a block whose first line is number `line` (0-based) of the file."""
        if raw.offset == 0 and raw.text.startswith(BOM):
            raw.array[: len(BOM)] = k.BLANK
        stop = raw.stop + raw.unterminated
        lines, bars, blanks = (int(count) for count in k.counts(raw.array, stop))
        out = _room(stop, lines, bars, blanks, int(k.key_bytes(raw.array, stop)))
        rows, entries, scales = (int(count) for count in k.tokens(raw.array, stop, out))
        if rows == 0:
            return None, lines
        at = out.lines[:rows] + line + 1
        indptr = out.indptr[: rows + 1]
        row_of = np.repeat(np.arange(rows), np.diff(indptr))
        values, y, weight = self._checked(out, rows, entries, scales, row_of, name, at)
        features = self._features(out, entries, row_of, name)
        if (features < 0).any():  # unknown to the recipe
            kept = features >= 0
            self.counters["features that training did not see"] += int((~kept).sum())
            indptr = np.concatenate([[0], np.cumsum(np.bincount(row_of[kept], minlength=rows))])
            features, values = features[kept], values[kept]
        rules = RowRules(self.options.dtype, "sum", self.options.keep_zeros, self.n_features)
        chunk = canonical(RawRows(indptr, features, values, y, None, weight), rules, self.counters, name, given, int(at[0]) - 1)
        unlabelled = np.isnan(chunk.y)
        if unlabelled.any():
            self.counters["rows without label left out"] += int(unlabelled.sum())
            chunk = take_rows(chunk, np.flatnonzero(~unlabelled))
        return chunk, lines

    def _checked(
        self, out: k.Tokens, rows: int, entries: int, scales: int, row_of: np.ndarray, name: str, at: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """(values of the entries, labels, importances) as float64. Raises BadInputError for the first wrong line."""
        wrong = _Wrong()
        heads = _texts(out.heads, out.head_ends, k.HEADS * rows)
        given = (np.diff(out.head_ends[: k.HEADS * rows + 1]) > 0).reshape(rows, k.HEADS)
        lines = at[row_of]
        prediction = "{} is an initial prediction, which is not supported; remove it"
        wrong.add(given[:, 2], at, lambda row: prediction.format(_shown(heads[k.HEADS * row + 2])))
        wrong.add(np.diff(out.key_ends[: entries + 1]) == 0, lines, lambda _: "a feature without a name")
        y = self._labels(heads, given[:, 0], at, wrong)
        weight = self._weights(heads, given[:, 1], at, wrong)
        values = _numbers(_texts(out.values, out.value_ends, entries), "1", lines, "value", wrong)
        scale = _numbers(
            _texts(out.scales, out.scale_ends, scales), "1", at[out.scale_rows[:scales]], "scale of a namespace", wrong
        )
        with np.errstate(over="ignore"):
            values *= scale[out.scale_of[:entries]]
            fits = np.isfinite(values.astype(self.options.dtype))
        dtype, more = self.options.dtype, "" if self.options.dtype == "float64" else "; use --dtype=float64"
        wrong.add(~fits, lines, lambda at: f"value {values[at]} does not fit {dtype}{more}")
        if wrong.what:
            raise BadInputError(f"{name}:{wrong.line}: {wrong.what}")
        return values, y, weight

    def _features(self, out: k.Tokens, entries: int, row_of: np.ndarray, name: str) -> np.ndarray:
        if self._keys.bits is not None:  # which takes less time than finding the distinct ones
            return self._keys.hashed(out.keys, out.key_ends[:entries], out.key_ends[1 : entries + 1], "")
        words = Words(*coded(_texts(out.keys, out.key_ends, entries)))
        try:
            found = self._keys.learn([KeyColumn("", words, row_of)])[0] if self._learn else self._keys.find(words.words)
        except TooManyKeysError:
            raise BadInputError(
                f"{name}: more than {self.options.max_categories:,} different features (--max-categories); hash them with "
                "--hash-bits=22, or raise --max-categories"
            ) from None
        except NoRoomForKeysError:
            raise self._keys.refusal(name) from None
        return found[words.codes]

    def _labels(self, heads: pa.Array, given: np.ndarray, at: np.ndarray, wrong: _Wrong) -> np.ndarray:
        if self.options.labels == "none":
            return np.zeros(len(given))
        if self.options.labels != "skip":
            wrong.add(~given, at, lambda _: _NO_LABEL)
        y = _numbers(heads.take(pa.array(k.HEADS * np.arange(len(given)))), "0", at, "label", wrong)
        y[~given] = np.nan
        return y

    def _weights(self, heads: pa.Array, given: np.ndarray, at: np.ndarray, wrong: _Wrong) -> np.ndarray | None:
        if self._weighted is None:
            self._weighted = bool(given[0])
        if not self._weighted:
            wrong.add(given, at, lambda _: "an importance, but the first row has none; give it the importance 1")
            return None
        weight = _numbers(heads.take(pa.array(k.HEADS * np.arange(len(given)) + 1)), "1", at, "importance", wrong)
        wrong.add(weight < 0, at, lambda row: f"importance {weight[row]:g} is negative")
        return weight


def _room(size: int, lines: int, bars: int, blanks: int, keys: int) -> k.Tokens:
    rows, entries = lines + 1, blanks + 1
    buffers = {"heads": size + 1, "keys": keys + 1, "values": size + 1, "scales": size + 1}
    ends = {"head_ends": k.HEADS * rows + 1, "key_ends": entries + 1, "value_ends": entries + 1, "scale_ends": bars + 1}
    more = {"scale_of": entries, "scale_rows": bars + 1, "lines": rows, "indptr": rows + 1}
    arrays = {name: np.empty(count, np.uint8) for name, count in buffers.items()}
    return k.Tokens(**arrays, **{name: np.empty(count, np.int64) for name, count in (ends | more).items()})


def _texts(data: np.ndarray, ends: np.ndarray, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.large_string(), count, [None, pa.py_buffer(ends[: count + 1]), pa.py_buffer(data)])


def _numbers(texts: pa.Array, default: str, lines: np.ndarray, what: str, wrong: _Wrong) -> np.ndarray:
    """float64; empty texts are `default`. The first that is not a finite number is added to `wrong`."""
    filled = pc.if_else(pc.equal(texts, ""), default, texts)
    try:
        values = filled.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    except pa.ArrowInvalid:
        values = np.array([_number(text) for text in filled], np.float64)  # None is nan
    bad = ~np.isfinite(values)
    why = ("is not finite", "is not a number")
    wrong.add(bad, lines, lambda at: f"{what} {_shown(filled[at])} {why[_number(filled[at]) is None]}")
    values[bad] = 0.0
    return values


def _number(text: pa.Scalar) -> float | None:
    try:
        return text.cast(pa.float64()).as_py()
    except pa.ArrowInvalid:
        return None


def _shown(text: pa.Scalar) -> str:
    """The text in quotes, for any bytes."""
    return repr(text.as_buffer().to_pybytes().decode("utf-8", "surrogateescape"))

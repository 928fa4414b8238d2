"""svmlight files of any size as blocks of rows: parsed in parallel, yielded in order, in bounded memory."""

from __future__ import annotations

import logging
import queue
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, Self

import numpy as np

from streamcut.errors import BadInputError, MemoryBudgetError, UsageError, spelled
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.redaction import redacted
from streamcut.foundation.shown import INT64_MAX
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.recipe.recipe import LabelRule, Recipe
from streamcut.io.sources.source import GroupCheck, Sizes, ahead, read_ahead
from streamcut.io.text import kernels as k
from streamcut.io.text.blocks import LARGEST_INDEX, BlockParser, ParsedBlock, RawBlock, Refused, TextSource, read_blocks
from streamcut.io.text.inputs import Input, expect_whole
from streamcut.io.text.messages import NUMBER, OLD_MAC, explain

if TYPE_CHECKING:
    from streamcut.io.formats.registry import Format, Raw

logger = logging.getLogger(__name__)

_NO_LIMIT = np.iinfo(np.int64).max
_LINE_BYTES = 16  # of memory per byte of one long line, whose entries take at least four bytes of text
LONGEST_LINE = 1 << 28
_REJECTS, _SHOWN = 20, 200  # refused lines that are kept, and bytes of each
_DTYPE = "float32"  # of values, by default
_USUAL = ConvertOptions()
_COUNTED = "files rows lines comment_lines unsorted_rows explicit_zeros underflows duplicates skipped_lines no_final_newline"
_NO_COUNTS = dict.fromkeys(_COUNTED.split(), 0)
_DUPLICATES = {"error": k.ERROR, "sum": k.SUM, "last": k.LAST}


def blocks_in_flight(threads: int) -> int:
    """Blocks of text held at once: one per thread, one waiting (or with the caller), and one being read."""
    return threads + 2 if threads > 1 else 1


class SvmlightSource(TextSource):
    """The source of rows of the svmlight files `paths`, compressed or not.

    Memory: `blocks_in_flight` × block_bytes of text, the rows of as many blocks, and a line longer than a block, up to
    `held_line`, the most that the memory limit allows. No line may exceed max_line_bytes. With threads=1 the caller's thread
    does all work, else one thread reads ahead and `threads` parse.

    counters   of the blocks yielded so far (none where a model reads them): files, rows, lines, comment_lines, unsorted_rows,
               explicit_zeros, underflows, duplicates, skipped_lines, no_final_newline
    index_base the base in use; None until an automatic one is found
    rejects    the first 20 lines refused under on_error="skip", with place and reason, also those before a resumed run

    options       of `convert`; labels="none": rows need none, and labels present are skipped
    recipe        decides instead of the options that it sets (BY_RECIPE)
    model_takes   the features of the model that reads the text, for messages; None: it becomes a store
    """

    rejects: list[str]

    def __init__(
        self,
        paths: list[str],
        options: ConvertOptions = _USUAL,
        *,
        threads: int = 2,
        block_bytes: int = 1 << 19,
        held_line: int | None = None,
        model_takes: str | None = None,
    ) -> None:
        self._recipe = options.recipe
        self.options = options = options if options.recipe is None else by_recipe(options.recipe, options)
        _expect_sense(options)
        super().__init__(paths)
        self.index_base = None if options.index_base == "auto" else 1 if options.index_base is None else int(options.index_base)
        self._threads, self._block_bytes = threads, block_bytes
        self._longest = max(options.max_line_bytes or LONGEST_LINE, block_bytes)
        self._held = min(self._longest, held_line or self._longest)
        self._model_takes = model_takes
        self._go_on(None)

    @classmethod
    def open(cls, form: Format, paths: list[str], options: ConvertOptions, scratch: str) -> Self:
        return cls(paths, options)

    @classmethod
    def scoring(cls, form: Format, paths: list[str], recipe: Recipe, raw: Raw) -> Self:
        raw.expect_no_columns("svmlight text has no columns")
        if recipe.table is not None:
            raise BadInputError(
                f"{paths[0]}: svmlight text, but the model takes {recipe.in_words()}; give it a table, or say its --format"
            )
        if recipe.hash_bits is not None and raw.index_base is not None:
            raise UsageError("index_base: the model hashes the features as they are written, so their numbers have no first one")
        options = by_recipe(recipe, ConvertOptions(labels=None if raw.labelled else "none", wide_index=True))
        if raw.index_base is not None:
            options = replace(options, index_base=raw.index_base)
        if recipe.hash_bits is None:
            options = replace(options, dtype="float64")  # the numbers as written; hashed sums match training bit for bit
        return cls(paths, options, model_takes=recipe.in_words())

    @property
    def n_features(self) -> int | None:
        bits = self.options.hash_bits
        return self.options.n_features if bits is None else 1 << bits

    @property
    def counters(self) -> dict[str, int]:
        return self._counts if self._model_takes is None else {}

    def begin(self, sizes: Sizes) -> None:
        self._threads, self._block_bytes = sizes.threads, sizes.block
        self._longest = max(self._longest, sizes.block)
        self._held = min(self._longest, max(sizes.block, sizes.row // (_LINE_BYTES * blocks_in_flight(sizes.threads))))

    def _go_on(self, place: dict | None) -> dict:
        """Restore what is carried from block to block: the lines before in the file, whether rows have a qid, the counters."""
        place = place or {"file": 0, "offset": 0, "lines": 0, "qid_mode": k.QID_UNKNOWN, "counters": _NO_COUNTS, "rejects": ()}
        self._lines, self._qid_mode = place["lines"], place["qid_mode"]
        self._counts, self.rejects = dict(place["counters"]), list(place["rejects"])
        return place

    def blocks(self, start: dict | None = None) -> Generator[tuple[Chunk, dict]]:
        """(rows, where their block started) of each block that has rows, in order; `start`, an earlier position, continues there.

        Rows own their arrays: indices int32, or int64 in a block with an index beyond int32; data of options.dtype; y float64;
        qid int64 if the rows have one; weight float64 with label_weights. Continuing yields identical blocks and counters. It
        seeks in plain files, decompresses and discards in others. A recurring qid is noticed among the rows from `start` on.

        Raises BadInputError with file:line:column, NotFoundError, and MemoryBudgetError for a line that does not fit in memory.
        """
        if self.index_base is None:
            self.index_base = start["index_base"] if start else self._find_base()
        groups = None if self.options.group_by_qid else GroupCheck()
        rules = self._rules(self.index_base, self.options.n_features)
        with closing(self._parsed(rules, start)) as blocks:
            for raw, parsed in blocks:
                place = {"file": raw.file, "offset": raw.offset, "lines": self._lines, "rows": self._counts["rows"]}
                place |= {"qid_mode": self._qid_mode, "index_base": self.index_base}
                place |= {"counters": dict(self._counts), "rejects": list(self.rejects), "taken": raw.taken}
                if groups is not None and parsed.chunk.qid is not None:
                    self._check_groups(raw, parsed, groups)
                self._account(raw, parsed, rules)
                if raw.unterminated:
                    logger.warning("%s: no line feed at the end of the file; is it complete?", self.paths[raw.file])
                if parsed.chunk.n_rows:
                    yield replace(parsed.chunk, first_row=place["rows"]), place
        if self._counts["rows"] == 0:
            raise BadInputError(f"{', '.join(self.paths[:3])}{', …' * (len(self.paths) > 3)}: no rows")

    def recipe(self) -> Recipe:
        """The recipe of these rows; the index base is known once reading has begun."""
        o = self.options
        if self._recipe is not None:
            return self._recipe
        return Recipe(
            form="hashed" if o.hash_bits else "numbers",
            hash_bits=o.hash_bits,
            index_base=self.index_base,
            dtype=o.dtype or _DTYPE,
            duplicates="sum" if o.hash_bits else o.duplicates,
            labels=LabelRule(tuple((o.label_map or {}).items()), o.multilabel, o.label_weights),
        )

    def _rules(self, base: int, n_features: int | None) -> k.Rules:
        o = self.options
        wide = o.wide_index or (o.n_features or 0) > LARGEST_INDEX
        return k.Rules(
            base=base,
            last=n_features - 1 + base if n_features is not None else _NO_LIMIT if wide else LARGEST_INDEX,
            hash_bits=o.hash_bits or 0,
            duplicates=k.SUM if o.hash_bits else _DUPLICATES[o.duplicates],
            keep_zeros=o.keep_zeros,
            label_tokens=o.label_map is not None or o.multilabel is not None,
            label_weights=o.label_weights,
            no_labels=o.labels == "none",
        )

    def _find_base(self) -> int:
        """The index base of all files: 0 if any has index 0, else 1."""
        if streams := [file.name for file in self.inputs if not file.regular]:
            raise UsageError(
                f"{streams[0]}: an automatic index base reads the data twice, but a pipe can be read once; give --index-base"
            )
        zero, last, n = "", "", self.options.n_features  # the first files with index 0, and with index n
        rules = self._rules(0, None)
        with closing(self._parsed(rules, None)) as blocks:
            for raw, parsed in blocks:
                self._account(raw, parsed, rules)
                name = self.paths[raw.file]
                zero, last = zero or name * (parsed.lowest == 0), last or name * (parsed.highest == n)
        if zero and last and zero != last:
            raise BadInputError(
                f"{last} has index {n}, so its features begin at 1, but {zero} has index 0; convert each with its --index-base"
            )
        return 0 if zero else 1

    def _parsed(self, rules: k.Rules, start: dict | None) -> Generator[tuple[RawBlock, ParsedBlock]]:
        """Blocks in order, one at a time until the first row shows whether rows have a qid."""
        skip, place = self.options.on_error == "skip", self._go_on(start)

        def parse(raw: RawBlock) -> ParsedBlock:
            return parsers[id(raw)].parse(raw, rules, self._qid_mode, self._label, skip)

        free: queue.SimpleQueue[RawBlock | None] = queue.SimpleQueue()
        buffers = [RawBlock(self._block_bytes, k.PADDING) for _ in range(blocks_in_flight(self._threads))]
        parsers = {id(raw): BlockParser(np.dtype(self.options.dtype or _DTYPE)) for raw in buffers}
        for raw in buffers:
            free.put(raw)
        reading = read_blocks(self.inputs, place["file"], place["offset"], free, self._held, self._longest)
        with closing(reading if self._threads == 1 else read_ahead(reading)) as blocks:
            try:
                for raw in blocks:
                    yield raw, parse(raw)
                    free.put(raw)
                    if self._threads > 1 and self._qid_mode != k.QID_UNKNOWN:
                        break
                with closing(ahead(blocks, parse, self._threads)) as working:
                    for raw, parsed in working:
                        yield raw, parsed()
                        free.put(raw)
            finally:
                free.put(None)  # ends a reader that waits for a block

    def _label(self, token: bytes) -> float:
        """The label of a token under label_map and multilabel, nan if none."""
        if self.options.multilabel is None:
            return self._one_label(token)
        labels = [self._one_label(part) for part in token.split(b",")] if token else []
        if not all(np.isfinite(labels)):
            return np.nan
        return 1.0 if self.options.multilabel in labels else -1.0

    def _one_label(self, token: bytes) -> float:
        if self.options.label_map is not None:
            return self.options.label_map.get(token.decode("utf-8", "backslashreplace"), np.nan)
        return float(token) if NUMBER.fullmatch(token) else np.nan

    def _account(self, raw: RawBlock, parsed: ParsedBlock, rules: k.Rules) -> None:
        """Count the block; raises for its first refused line, or takes all of them down."""
        before, counts = self._lines, self._counts
        if raw.too_long:
            self._refuse_line(raw, f"{self.paths[raw.file]}:{before + 1}")
        for refused in parsed.refused:
            self._refuse(self.inputs[raw.file], before + refused.line + 1, refused, rules)
        for name, count in {**parsed.counts, "files": raw.last, "no_final_newline": raw.unterminated}.items():
            counts[name] += count
        self._qid_mode = parsed.qid_mode
        self._lines = 0 if raw.last else before + parsed.counts["lines"]

    def _refuse_line(self, raw: RawBlock, where: str) -> NoReturn:
        """Raise for a line that is too long."""
        if b"\r" in memoryview(raw.text)[: raw.stop].tobytes():
            raise BadInputError(f"{where}: {OLD_MAC}")
        if raw.line_bytes > self._longest:
            raise BadInputError(
                f"{where}: the line is longer than {self._longest:,} bytes (convert: --max-line-bytes); is this a text file?"
            )
        raise MemoryBudgetError(
            f"{where}: the line has {raw.line_bytes:,} bytes, and --memory leaves {self._held:,} for one; raise --memory"
        )

    def _refuse(self, file: Input, line: int, refused: Refused, rules: k.Rules) -> None:
        column, reason = explain(
            refused.code,
            refused.text,
            refused.at,
            first_line=line == 1,
            rules=rules,
            n_features=self.options.n_features,
            label_map=self.options.label_map is not None,
            model_takes=self._model_takes,
        )
        name = file.name
        if self.options.on_error == "raise":
            if file.regular:  # damaged compressed data yields wrong text first, and may be detected much later
                with closing(file.open()) as again:
                    expect_whole(again, name)
            raise BadInputError(f"{name}:{line}:{column}: {reason}")
        self._counts["skipped_lines"] += 1
        most = 1000 if self.options.max_errors is None else self.options.max_errors
        if self._counts["skipped_lines"] > most:
            raise BadInputError(f"more than {most} refused lines (--max-errors); at {name}:{line}:{column}: {reason}")
        if len(self.rejects) < _REJECTS:
            text = refused.text[:_SHOWN].decode("utf-8", "backslashreplace").rstrip("\r\n")
            self.rejects.append(f"{redacted(name)}:{line}:{spelled(f'{column}: {reason}')}: {text}")

    def _check_groups(self, raw: RawBlock, parsed: ParsedBlock, groups: GroupCheck) -> None:
        """Raise for the first row that returns to an earlier group."""
        assert parsed.chunk.qid is not None
        row = groups.first_repeat(parsed.chunk.qid)
        if row is not None and not raw.too_long:
            raise BadInputError(
                f"{self.paths[raw.file]}:{self._lines + _line_of_row(raw, parsed, row) + 1}: qid {parsed.chunk.qid[row]} comes "
                "back after other rows; rows of a qid must be contiguous (or --group-by-qid)"
            )


def by_recipe(recipe: Recipe, options: ConvertOptions) -> ConvertOptions:
    """`options` that read text into the features and labels of `recipe`; a label may be a word, or its number."""
    words = dict(recipe.labels.words)
    numbers = {spelling: number for number in words.values() for spelling in (f"{number:g}", f"{number:+g}")}
    return replace(
        options,
        recipe=None,
        index_base=1 if recipe.index_base is None else recipe.index_base,
        hash_bits=recipe.hash_bits,
        dtype=recipe.dtype or _DTYPE,
        duplicates="error" if recipe.hash_bits is not None else recipe.duplicates,
        label_map={**numbers, **words} or None,
        multilabel=recipe.labels.multilabel,
        label_weights=recipe.labels.weighted,
    )


def _expect_sense(options: ConvertOptions) -> None:
    """Raise UsageError for options that exclude each other in svmlight text."""
    if options.n_features is not None and options.n_features >= INT64_MAX:
        raise UsageError(f"n_features: {options.n_features} is too large; the most is {INT64_MAX - 1}")
    if options.hash_bits is not None and options.index_base == "auto":
        raise UsageError("hash_bits gives the number of features; it does not go with an automatic index base")
    if options.index_base == "auto" and options.n_features is None:
        raise UsageError(
            "an automatic index base needs --n-features, to tell features that begin at 1 from a feature 0 that never occurs"
        )
    if options.multilabel is not None and options.label_weights:
        raise UsageError("multilabel and label_weights exclude each other: an empty label and a weight look the same")


def _line_of_row(raw: RawBlock, parsed: ParsedBlock, row: int) -> int:
    """The line, from 0 in its block, of a row: rows are the lines that are not blank, comments or refused."""
    refused = {r.line for r in parsed.refused}
    lines = bytes(memoryview(raw.text)[: raw.stop]).removeprefix(b"\xef\xbb\xbf" if raw.offset == 0 else b"").split(b"\n")
    rows = (number for number, line in enumerate(lines) if number not in refused and line.strip(b" \t\r")[:1] not in (b"", b"#"))
    return next(number for position, number in enumerate(rows) if position == row)

"""svmlight files of any size as blocks of rows: parsed in parallel, yielded in order, in bounded memory."""

from __future__ import annotations

import logging
import queue
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn, Self

import numpy as np

from streamcut.errors import BadInputError, MemoryBudgetError, UsageError, spelled
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.redaction import redacted
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.source import GroupCheck, Sizes, ahead, read_ahead
from streamcut.io.text import kernels as k
from streamcut.io.text.blocks import BlockParser, ParsedBlock, RawBlock, Refused, TextSource, read_blocks
from streamcut.io.text.inputs import Input, expect_whole
from streamcut.io.text.messages import NUMBER, OLD_MAC, explain
from streamcut.io.text.options import SvmlightOptions, of_conversion, of_model, recipe_of

if TYPE_CHECKING:
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.formats.registry import Format, Raw

logger = logging.getLogger(__name__)

_NO_LIMIT = np.iinfo(np.int64).max
_LINE_BYTES = 16  # of memory per byte of one long line, whose entries take at least four bytes of text
_LARGEST_INDEX = np.iinfo(np.int32).max
LONGEST_LINE = 1 << 28
_REJECTS, _SHOWN = 20, 200  # refused lines that are kept, and bytes of each
_DUPLICATES = {"error": k.ERROR, "sum": k.SUM, "last": k.LAST}


def blocks_in_flight(threads: int) -> int:
    """Blocks of text held at once: one per thread, one waiting (or with the caller), and one being read."""
    return threads + 2 if threads > 1 else 1


class SvmlightSource(TextSource):
    """The source of rows of the svmlight files that `paths` name (see find_inputs), compressed or not.

    Memory: `blocks_in_flight` × block_bytes of text, the rows of as many blocks, and a line longer than a block, up to
    `held_line`, the most that the memory limit allows. No line may exceed max_line_bytes. With threads=1 the caller's thread
    does all work, else one thread reads ahead and `threads` parse.

    counters   of the blocks yielded so far (none where a model reads them): files, rows, lines, comment_lines, unsorted_rows,
               explicit_zeros, underflows, duplicates, skipped_lines, no_final_newline
    index_base the base in use; None until an automatic one is found
    rejects    the first 20 lines refused under on_error="skip", with place and reason, also those before a resumed run

    model_takes   the features of the model that reads the text, for messages; None: it becomes a store
    recipe        the source of the options (`by_recipe`), if there was one
    """

    def __init__(
        self,
        paths: list[str],
        options: SvmlightOptions | None = None,
        *,
        threads: int = 2,
        block_bytes: int = 1 << 19,
        max_line_bytes: int = LONGEST_LINE,
        held_line: int | None = None,
        model_takes: str | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        if threads < 1 or block_bytes < 16:
            raise UsageError(f"threads must be at least 1 and block_bytes at least 16, not {threads} and {block_bytes}")
        self.options = options or SvmlightOptions()
        super().__init__(paths)
        self.index_base = self.options.index_base
        self.rejects: list[str] = []
        self._threads, self._block_bytes, self._longest = threads, block_bytes, max(max_line_bytes, block_bytes)
        self._held = min(self._longest, held_line or self._longest)
        self._model_takes, self._given = model_takes, recipe
        self.counters = _no_counts()

    @classmethod
    def open(cls, form: Format, paths: list[str], options: ConvertOptions, scratch: str) -> Self:
        longest = options.max_line_bytes or LONGEST_LINE
        return cls(paths, of_conversion(options), max_line_bytes=longest, recipe=options.recipe)

    @classmethod
    def scoring(cls, form: Format, paths: list[str], recipe: Recipe, raw: Raw) -> Self:
        return cls(paths, of_model(recipe, raw, paths[0]), model_takes=recipe.in_words())

    @property
    def n_features(self) -> int | None:
        bits = self.options.hash_bits
        return self.options.n_features if bits is None else 1 << bits

    def begin(self, sizes: Sizes) -> None:
        self._threads, self._block_bytes = sizes.threads, sizes.block
        self._longest = max(self._longest, sizes.block)
        self._held = min(self._longest, max(sizes.block, sizes.row // (_LINE_BYTES * blocks_in_flight(sizes.threads))))

    def blocks(self, start: dict | None = None) -> Iterator[tuple[Chunk, dict]]:
        """(rows, where their block started) of each block that has rows, in order; `start`, an earlier position, continues there.

        Rows own their arrays: indices int32, or int64 in a block with an index beyond int32; data of options.dtype; y float64;
        qid int64 if the rows have one; weight float64 with label_weights. Continuing yields identical blocks and counters. It
        seeks in plain files, decompresses and discards in others. A recurring qid is noticed among the rows from `start` on.

        Raises BadInputError with file:line:column, NotFoundError, and MemoryBudgetError for a line that does not fit in memory.
        """
        self.rejects = list((start or {}).get("rejects", ()))
        if self.index_base is None:
            self.index_base = start["index_base"] if start else self._find_base()
        groups = None if self.options.group_by_qid else GroupCheck()
        state = _State.at(start)
        self.counters = state.counters if self._model_takes is None else {}
        rules = self._rules(self.index_base, self.options.n_features)
        with closing(self._parsed(rules, state)) as parsed_blocks:
            for raw, parsed in parsed_blocks:
                place = {**state.place(raw, self.index_base), "rejects": list(self.rejects)}
                try:
                    self._account(raw, parsed, rules, state, report=True)
                except BadInputError:
                    if parsed.chunk.qid is not None and groups is not None and parsed.refused:
                        self._check_groups(raw, parsed, place, groups, before=parsed.refused[0].line)
                    raise
                if parsed.chunk.qid is not None and groups is not None:
                    self._check_groups(raw, parsed, place, groups)
                chunk = replace(parsed.chunk, first_row=place["rows"])
                if chunk.n_rows:
                    yield chunk, place
        if state.counters["rows"] == 0:
            names = ", ".join(i.name for i in self.inputs[:3]) + (", …" if len(self.inputs) > 3 else "")
            raise BadInputError(f"{names}: no rows")

    def recipe(self) -> Recipe:
        """The recipe of these rows; the index base is known once reading has begun."""
        return self._given or recipe_of(self.options, self.index_base)

    def _rules(self, base: int, n_features: int | None) -> k.Rules:
        o = self.options
        return k.Rules(
            base=base,
            last=n_features - 1 + base if n_features is not None else _NO_LIMIT if self._takes_wide else _LARGEST_INDEX,
            hash_bits=o.hash_bits or 0,
            duplicates=k.SUM if o.hash_bits else _DUPLICATES[o.duplicates],
            keep_zeros=o.keep_zeros,
            label_tokens=o.label_map is not None or o.multilabel is not None,
            label_weights=o.label_weights,
            no_labels=o.no_labels,
        )

    @property
    def _takes_wide(self) -> bool:
        return self.options.wide_index or (self.options.n_features or 0) > _LARGEST_INDEX

    def _find_base(self) -> int:
        """The index base of all files: 0 if any has index 0, else 1."""
        streams = [i.name for i in self.inputs if not i.regular]
        if streams:
            raise UsageError(
                f"{streams[0]}: an automatic index base reads the data twice, but a pipe can be read once; give --index-base"
            )
        lowest = [_NO_LIMIT] * len(self.inputs)
        highest = [-1] * len(self.inputs)
        state = _State.at(None)
        rules = self._rules(0, None)
        with closing(self._parsed(rules, state)) as parsed_blocks:
            for raw, parsed in parsed_blocks:
                self._account(raw, parsed, rules, state, report=False)
                lowest[raw.file] = min(lowest[raw.file], parsed.lowest)
                highest[raw.file] = max(highest[raw.file], parsed.highest)
        n = self.options.n_features
        zero = next((i.name for i, low in zip(self.inputs, lowest, strict=True) if low == 0), None)
        one = next((i.name for i, high in zip(self.inputs, highest, strict=True) if high == n), None)
        if zero is not None and one is not None and zero != one:
            raise BadInputError(
                f"{one} has index {n}, so its features begin at 1, but {zero} has index 0; convert each with its --index-base"
            )
        return 1 if zero is None else 0

    def _parsed(self, rules: k.Rules, state: _State) -> Generator[tuple[RawBlock, ParsedBlock]]:
        """Blocks in order, one at a time until the first row shows whether rows have a qid."""
        skip, wide = self.options.on_error == "skip", (self.options.n_features or 0) > 1 << 31

        def parse(raw: RawBlock) -> ParsedBlock:
            return parsers[id(raw)].parse(raw, rules, state.qid_mode, self._label, skip)

        free: queue.SimpleQueue[RawBlock | None] = queue.SimpleQueue()
        buffers = [RawBlock(self._block_bytes, k.PADDING) for _ in range(blocks_in_flight(self._threads))]
        parsers = {id(raw): BlockParser(np.dtype(self.options.dtype), wide) for raw in buffers}
        for raw in buffers:
            free.put(raw)
        reading = read_blocks(self.inputs, state.file, state.offset, free, self._held, self._longest)
        with closing(reading if self._threads == 1 else read_ahead(reading)) as blocks:
            try:
                for raw in blocks:
                    yield raw, parse(raw)
                    free.put(raw)
                    if self._threads > 1 and state.qid_mode != k.QID_UNKNOWN:
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

    def _account(self, raw: RawBlock, parsed: ParsedBlock, rules: k.Rules, state: _State, *, report: bool) -> None:
        """Advance `state` past the block; raise for its first refused line, or (with `report`) report all of them."""
        name, before, counters = self.inputs[raw.file].name, state.lines, state.counters
        if raw.too_long:
            self._refuse_line(raw, f"{name}:{before + 1}")
        for refused in parsed.refused:
            self._refuse(self.inputs[raw.file], before + refused.line + 1, refused, rules, counters, report)
        counters["files"] += raw.last
        counters["rows"] += parsed.chunk.n_rows
        counters["lines"] += parsed.lines
        counters["comment_lines"] += parsed.comments
        counters["unsorted_rows"] += 0 if rules.hash_bits else parsed.unsorted_rows
        counters["explicit_zeros"] += parsed.zeros
        counters["underflows"] += parsed.underflows
        counters["duplicates"] += parsed.duplicates
        if raw.unterminated:
            counters["no_final_newline"] += 1
            if report:
                logger.warning("%s: no line feed at the end of the file; is it complete?", name)
        state.qid_mode = parsed.qid_mode
        state.lines = 0 if raw.last else before + parsed.lines

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

    def _refuse(self, file: Input, line: int, refused: Refused, rules: k.Rules, counters: dict[str, int], report: bool) -> None:
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
        counters["skipped_lines"] += 1
        if counters["skipped_lines"] > self.options.max_errors:
            raise BadInputError(
                f"more than {self.options.max_errors} refused lines (--max-errors); at {name}:{line}:{column}: {reason}"
            )
        if report and len(self.rejects) < _REJECTS:
            text = refused.text[:_SHOWN].decode("utf-8", "backslashreplace").rstrip("\r\n")
            self.rejects.append(f"{redacted(name)}:{line}:{spelled(f'{column}: {reason}')}: {text}")

    def _check_groups(
        self, raw: RawBlock, parsed: ParsedBlock, place: dict, groups: GroupCheck, before: int | None = None
    ) -> None:
        """Raise for the first row that returns to an earlier group; `before`: only rows in earlier lines of the block."""
        qid = parsed.chunk.qid
        assert qid is not None
        row = groups.first_repeat(qid)
        if row is None:
            return
        in_block = _line_of_row(raw, parsed, row)
        if before is not None and in_block > before:
            return
        name, line = self.inputs[raw.file].name, place["lines"] + in_block + 1
        raise BadInputError(
            f"{name}:{line}: qid {qid[row]} comes back after other rows; rows of a qid must be contiguous (or --group-by-qid)"
        )


@dataclass
class _State:
    """State carried from block to block; reading begins at `file` and `offset`."""

    file: int
    offset: int
    lines: int
    qid_mode: int
    counters: dict[str, int]

    @classmethod
    def at(cls, place: dict | None) -> _State:
        if place is None:
            return cls(0, 0, 0, k.QID_UNKNOWN, _no_counts())
        return cls(place["file"], place["offset"], place["lines"], place["qid_mode"], dict(place["counters"]))

    def place(self, raw: RawBlock, index_base: int) -> dict:
        return {
            "file": raw.file,
            "offset": raw.offset,
            "lines": self.lines,
            "rows": self.counters["rows"],
            "qid_mode": self.qid_mode,
            "index_base": index_base,
            "counters": dict(self.counters),
        }


def _no_counts() -> dict[str, int]:
    names = "files rows lines comment_lines unsorted_rows explicit_zeros underflows duplicates skipped_lines no_final_newline"
    return dict.fromkeys(names.split(), 0)


def _line_of_row(raw: RawBlock, parsed: ParsedBlock, row: int) -> int:
    """The line, from 0 in its block, of a row: rows are the lines that are not blank, comments or refused."""
    refused = {r.line for r in parsed.refused}
    lines = bytes(memoryview(raw.text)[: raw.stop]).removeprefix(b"\xef\xbb\xbf" if raw.offset == 0 else b"").split(b"\n")
    rows = (number for number, line in enumerate(lines) if number not in refused and line.strip(b" \t\r")[:1] not in (b"", b"#"))
    return next(number for position, number in enumerate(rows) if position == row)

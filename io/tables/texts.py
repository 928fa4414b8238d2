"""The words of a column of texts, letters by the rules of Python, and English words that say little about a topic."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.compiler.jit import inlined, kernel
from streamcut.io.recipe.table import TableColumn
from streamcut.io.tables.arrow import ColumnTypeError, decoded, kind_of
from streamcut.io.tables.kernels import bytes_of, texts_of

_BY_CONTEXT = (b"\xc4\xb0", b"\xce\xa3")  # İ becomes two characters, Σ depends on what follows
_BLANKS = re.compile(r"\s\s+")


class Runs(NamedTuple):
    """Words: text i has those from ends[i] to ends[i + 1] − 1 (int64), word w is data[starts[w]:stops[w]] (uint8, int64)."""

    ends: np.ndarray
    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray


def words_of_texts(column: pa.Array, wanted: TableColumn) -> Runs:
    """The words of a column of texts: those of scikit-learn's HashingVectorizer and CountVectorizer with the same n-grams.

    A missing text has none. Raises ColumnTypeError.
    """
    if kind_of(column.type) != "text":
        raise ColumnTypeError(f"holds {column.type}, not text")
    column = decoded(column)
    if pa.types.is_null(column.type):
        column = column.cast(pa.large_string())
    column = pc.fill_null(column, "") if column.null_count else column
    data, offsets = bytes_of(column)
    used = data[offsets[0] : offsets[-1]]
    ascii_only = used.max(initial=0) < 0x80
    content = b"" if ascii_only else used.tobytes()
    data, offsets = bytes_of(_lowered(column, wanted.characters, any(special in content for special in _BY_CONTEXT)))
    if wanted.characters:
        first = np.flatnonzero((data[: offsets[-1]] & 0xC0) != 0x80)  # bytes of characters, which others go on
        runs = Runs(np.searchsorted(first, offsets), data, first, np.append(first[1:], offsets[-1]))
    else:
        size = int(offsets[-1] - offsets[0])
        out, ends = np.empty(size + len(offsets), np.uint8), np.empty(len(offsets), np.int64)
        starts, stops = np.empty((2, size // 2 + 1), np.int64)
        count = tokens(data, offsets, letters_of(not ascii_only), out, ends, starts, stops)
        runs = Runs(ends, out, starts[:count], stops[:count])
    if wanted.ngrams == (1, 1):
        return runs
    least, most = wanted.ngrams
    count = sum(int(np.maximum(np.diff(runs.ends) - size + 1, 0).sum()) for size in range(least, most + 1))
    ends, bounds = np.empty_like(runs.ends), np.empty((2, count), np.int64)
    grams(runs.ends, runs.starts, runs.stops, least, most, wanted.characters, ends, *bounds)
    return Runs(ends, runs.data, *bounds)


def _lowered(column: pa.Array, blanks: bool, by_context: bool) -> pa.Array:
    """Texts in lower case, and (`blanks`) with one blank for several. Arrow does the same as Python, except `by_context`."""
    if not blanks and not by_context:
        with suppress(pa.ArrowInvalid):  # not UTF-8
            return pc.utf8_lower(column)
    texts = [text.lower() for text in texts_of(column, "replace")]
    return pa.array([_BLANKS.sub(" ", text) for text in texts] if blanks else texts, pa.large_string())


@cache
def letters_of(every: bool) -> np.ndarray:
    r"""Of ASCII, or of `every` number that four bytes hold: uint8, whether it is a code point that `\w` matches."""
    letters = np.zeros(1 << 21 if every else 128, np.uint8)  # Arrow lets numbers pass that are none
    for run in re.finditer(r"\w+", "".join(map(chr, range(min(len(letters), sys.maxunicode + 1))))):
        letters[run.start() : run.end()] = 1
    return letters


@inlined
def _code_point(data, at):
    """(code point that begins at data[at], its length in bytes) of text that Arrow or Python wrote."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | np.int64(data[at + 1] & 0x3F), 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | np.int64(data[at + 1] & 0x3F) << 6 | np.int64(data[at + 2] & 0x3F), 3
    low = np.int64(data[at + 2] & 0x3F) << 6 | np.int64(data[at + 3] & 0x3F)
    return (first & 0x07) << 18 | np.int64(data[at + 1] & 0x3F) << 12 | low, 4


@kernel
def tokens(data, offsets, letters, out, rows, starts, stops):
    """The words of texts data[offsets[i]:offsets[i + 1]], as `_lowered` writes them, with one blank between those of a text.

    letters  uint8: whether a code point is part of a word; at least all code points of the texts
    out      uint8: a byte per byte of data, and one per text, suffice; rows int64 (n + 1): row i has words rows[i] to
             rows[i + 1] − 1
    starts, stops   int64: bounds of a word in `out`; half the bytes of data, plus 1, suffice

    Returns the number of words. A word has two letters or more.
    """
    count, at = 0, 0
    rows[0] = 0
    for row in range(len(offsets) - 1):
        here, stop = offsets[row], offsets[row + 1]
        while here < stop:
            begin, size = at, 0
            while here < stop:
                point, length = _code_point(data, here)
                here += length
                if letters[point] == 0:
                    break
                for t in range(here - length, here):
                    out[at] = data[t]
                    at += 1
                size += 1
            if size < 2:
                at = begin
                continue
            starts[count], stops[count] = begin, at
            count += 1
            out[at] = 32
            at += 1
        rows[row + 1] = count
    return count


@kernel
def grams(rows, starts, stops, least, most, by_size, gram_rows, gram_starts, gram_stops):
    """Runs of `least` to `most` neighbouring words or characters of a row, by their first one, or (`by_size`) by their length.

    As one byte separates words, a run of them is a word, too. `gram_rows`, `gram_starts` and `gram_stops` are filled.
    """
    count = 0
    gram_rows[0] = 0
    for row in range(len(rows) - 1):
        begin, size = rows[row], rows[row + 1] - rows[row]
        for outer in range(most - least + 1 if by_size else size):
            for inner in range(size if by_size else most - least + 1):
                first, length = (inner, least + outer) if by_size else (outer, least + inner)
                if first + length > size:
                    break
                gram_starts[count], gram_stops[count] = starts[begin + first], stops[begin + first + length - 1]
                count += 1
        gram_rows[row + 1] = count


# At least two letters, like the words of texts; includes the pieces of contractions, which are split at the apostrophe.
_WORDS = """
about above across after afterwards again against all almost alone along already also although always am among an and another
any anybody anyhow anyone anything anyway anywhere are aren around as at away be became because become becomes been before
beforehand behind being below beside besides between beyond both but by can cannot could couldn did didn do does doesn doing
don done down during each either else elsewhere enough etc even ever every everybody everyone everything everywhere except few
for former from further get gets got had hadn has hasn have haven having he hence her here hers herself him himself his how
however if in indeed instead into is isn it its itself just least less ll many may maybe me meanwhile might mine more moreover
most mostly much must mustn my myself neither never nevertheless no nobody none nor not nothing now nowhere of off often on
once one only onto or other others otherwise ought our ours ourselves out over own per perhaps quite rather re really same
shall shan she should shouldn since so some somebody somehow someone something sometimes somewhere still such than that the
their theirs them themselves then there thereby therefore these they this those though through throughout thus to together too
toward towards under until up upon us ve very via was wasn we well were weren what whatever when whenever where whereas
whether which while who whoever whole whom whose why will with within without won would wouldn yet you your yours yourself
yourselves
"""
ENGLISH = frozenset(_WORDS.split())

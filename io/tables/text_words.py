"""The words of a column of texts, letters by the rules of Python, and English words that say little about a topic."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.io.recipe.table import Column
from streamcut.io.tables import text_kernels as k
from streamcut.io.tables.arrow import ColumnTypeError, decoded, kind_of
from streamcut.io.tables.kernels import bytes_of

BY_CONTEXT = (b"\xc4\xb0", b"\xce\xa3")  # İ becomes two characters, Σ depends on what follows: left to Python


@cache
def letters_of(every: bool) -> tuple[np.ndarray, np.ndarray]:
    r"""Of ASCII, or of `every` code point: uint8, whether `\w` matches it; int32, its lower case."""
    size = sys.maxunicode + 1 if every else 128
    whole = "".join(map(chr, range(size)))
    letters = np.zeros(size, np.uint8)
    for run in re.finditer(r"\w+", whole):
        letters[run.start() : run.end()] = 1
    lower = [ord(small) if len(small := letter.lower()) == 1 else ord(letter) for letter in whole]
    return letters, np.array(lower, np.int32)


class Runs(NamedTuple):
    """Words: text i has those from ends[i] to ends[i + 1] − 1 (int64), word w is data[starts[w]:stops[w]] (uint8, int64)."""

    ends: np.ndarray
    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray


def words_of_texts(column: pa.Array, wanted: Column) -> Runs:
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
    if any(special in content for special in BY_CONTEXT):
        data, offsets = bytes_of(pa.array([text.lower() for text in column.to_pylist()], pa.large_string()))
    letters, lower = letters_of(not ascii_only)
    size, rows = int(offsets[-1] - offsets[0]), np.empty(len(offsets), np.int64)
    if wanted.characters:
        out, places = np.empty(3 * size + 8, np.uint8), np.empty(size + 1, np.int64)
        count = k.characters(data, offsets, lower, out, rows, places)
        starts, stops = places[:count], places[1 : count + 1]
    else:
        out, starts, stops = np.empty(2 * size + 8, np.uint8), *np.empty((2, size // 2 + 1), np.int64)
        count = k.tokens(data, offsets, letters, lower, out, rows, starts, stops)
        starts, stops = starts[:count], stops[:count]
    if wanted.ngrams == (1, 1):
        return Runs(rows, out, starts, stops)
    least, most = wanted.ngrams
    count = sum(int(np.maximum(np.diff(rows) - size + 1, 0).sum()) for size in range(least, most + 1))
    ends, runs = np.empty_like(rows), np.empty((2, count), np.int64)
    k.grams(rows, starts, stops, least, most, wanted.characters, ends, *runs)
    return Runs(ends, out, *runs)


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

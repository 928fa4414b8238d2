"""Endless text from a seed, half of it damaged, against slow references: svmlight and Vowpal Wabbit.

Every fuzzer is a generator: each step makes one input, shows it to the product, and yields how many lines were compared. A
finding is an AssertionError, or any exception that is no refusal. tests/inside/io/test_text_fuzz.py takes the first steps,
scripts/checks/fuzz.py as many as it is told.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from reference import text as reference

from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.text.svmlight import SvmlightSource
from streamcut.io.text.vw import VwSource

_BLOCKS = [16, 64, 1000, 1 << 14]  # bytes


def _damaged(rng: random.Random, line: bytes, alphabet: bytes, probability: float) -> bytes:
    """With this probability, a few bytes in one place are others."""
    if rng.random() >= probability:
        return line
    at = rng.randrange(len(line) + 1)
    return line[:at] + bytes(rng.choices(alphabet, k=rng.randrange(3))) + line[at + rng.randrange(3) :]


# --- svmlight ---

_ALL = {"on_error": "skip", "max_errors": 10**9, "group_by_qid": True}
_COUNTED, _FLOATS = {"index_base": 1, "dtype": "float32", **_ALL}, {"dtype": "float64", **_ALL}
OPTIONS = [
    ConvertOptions(**_COUNTED),
    ConvertOptions(index_base=0, n_features=12, duplicates="sum", label_weights=True, **_FLOATS),
    ConvertOptions(multilabel=2.0, duplicates="last", keep_zeros=True, **_COUNTED),
    ConvertOptions(label_map={"1": 1.0, "-1": 0.0, "ab": 5.0}, hash_bits=3, **_COUNTED),
]
_BYTES = b"0123456789+-.eE: \t\r#qid,abx_\x00\xff"
_LABELS = [b"1", b"-1", b"1", b"-1", b"+1", b"2.5", b"1,2", b"ab", b"1:2"]
_VALUES = [b"1", b"0", b"0.25", b"-7.", b"1e-60", b"3e38", b"0.1234567", b"12345678901234567890.5"]
_VALUES += [b"9007199254740993.00000000000000000001"]


def svmlight_line(rng: random.Random, qid: bool) -> bytes:
    """A third of them are damaged."""
    words = [rng.choice(_LABELS), *([b"qid:%d" % rng.randrange(9)] if qid else [])]
    features = [rng.randrange(1, 13) for _ in range(rng.randrange(9))]
    features = sorted(set(features)) if rng.random() < 0.7 else features
    words += [b"%d:%s" % (index, rng.choice(_VALUES)) for index in features]
    line = rng.choice([b" ", b" ", b"\t", b"  "]).join(words) + rng.choice([b"", b"", b" ", b"\r", b"# x", b"#\xff"])
    return _damaged(rng, line, _BYTES, 0.3)


def svmlight(rng: random.Random, folder: Path) -> Iterator[str]:
    """A file of one to sixty lines, or of any bytes."""
    while True:
        qid = rng.random() < 0.5
        lines = b"\n".join(svmlight_line(rng, qid) for _ in range(rng.randint(1, 60)))
        text = lines if rng.random() < 0.7 else bytes(rng.choices(_BYTES + b"\n", k=rng.randint(0, 80)))
        svmlight_agrees(folder / "fuzz.svm", text, rng.choice(OPTIONS), threads=1, block_bytes=rng.choice(_BLOCKS))
        yield f"{text.count(10) + 1}"


def svmlight_agrees(path: Path, text: bytes, options: ConvertOptions, least: int = 0, **arguments) -> None:
    """Rows, refused lines and counters are those of the reference, and there are at least so many rows."""
    path.write_bytes(text)
    source, rows = SvmlightSource([str(path)], options, **arguments), []
    try:
        for chunk, _ in source.blocks():
            for i in range(chunk.n_rows):
                entries = slice(chunk.indptr[i], chunk.indptr[i + 1])
                qid = None if chunk.qid is None else int(chunk.qid[i])
                weight = 1.0 if chunk.weight is None else chunk.weight[i]
                rows.append((chunk.y[i], qid, weight, chunk.indices[entries].tolist(), chunk.data[entries].tolist()))
    except BadInputError as error:
        if "no rows" not in str(error):
            raise
    refused, counters = [int(re.search(r"\.svm:(\d+):", reject)[1]) for reject in source.rejects], source.counters
    expected, expected_refused = reference.svmlight_rows(text, options)
    assert refused == expected_refused[:20]
    assert counters["skipped_lines"] == len(expected_refused)
    assert len(rows) >= least
    assert rows == [row[:5] for row in expected]
    assert options.hash_bits or counters["unsorted_rows"] == sum(row.unsorted for row in expected)
    for counter in ("zeros", "underflows", "duplicates"):
        assert counters["explicit_" * (counter == "zeros") + counter] == sum(getattr(row, counter) for row in expected)


# --- Vowpal Wabbit ---

_NAMES = [b"a", b"b", b"c", b"word", b"x=1,2", b"12", "hä".encode(), b"^", b"f^a", b"\xff\xfe"]
_NUMBERS = [b"1", b"0", b"-0", b"0.5", b"-7.", b".25", b"+3e2", b"0.1234567", b"-0.1234567", b"1e-60", b"16777217"]
_NUMBERS += [b"9007199254740993.00000000000000000001"]
_ODD_NUMBERS = [b"nan", b"inf", b"-Infinity", b"1e400", b"3e38", b"1e39", b"0x1p3", b"1_0", b"1e", b".", b"+", b"--1", b"1,5"]
_ODD_NUMBERS += [b"1f", b"\xff"]
_VW_BYTES = b"0123456789+-.eE: \t|'^abx\r\0\xff\xc3"
_NAMES_OF_RECIPE = (b"a", b"f^a", b"f^b", b"g^word", "g^hä".encode())


def _wabbit_line(rng: random.Random) -> bytes:
    number = lambda: rng.choice(_ODD_NUMBERS if rng.random() < 0.003 else _NUMBERS)  # noqa: E731
    blank = rng.choice([b" ", b" ", b"\t", b"  "])
    head = blank.join([number() for _ in range(rng.choice([1, 1, 1, 2, 2, 0 if rng.random() < 0.1 else 1]))])
    if rng.random() < 0.5:
        head = head.split(blank)[0] + blank + rng.choice([b"1", b"2.5", b"0"])
    parts = [head + rng.choice([blank, blank, blank + b"'tag", blank + b"tag"])]
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        space = rng.choice([b"", b"f", b"f", b"g"])
        if space and rng.random() < 0.15:
            space += b":" + number()
        words = [rng.choice(_NAMES) + (b":" + number() if rng.random() < 0.4 else b"") for _ in range(rng.randrange(5))]
        parts.append(space + blank + blank.join(words) + rng.choice([b"", blank]))
    return b"|".join(parts) + rng.choice([b"", b"", b"\r"])


def wabbit(rng: random.Random, folder: Path) -> Iterator[str]:
    """A file of one to sixty lines; where a line is refused, the lines after it are a file again."""
    recipe = Recipe("vw", dtype="float32", duplicates="sum", names=tuple(name.decode() for name in _NAMES_OF_RECIPE))
    while True:
        made_by = rng.choice([None, None, recipe])
        options = ConvertOptions(
            labels=rng.choice([None, None, None, "none"]),
            missing_labels=rng.choice(["error", "error", "skip"]),
            hash_bits=rng.choice([None, 3, 18]) if made_by is None else None,
            dtype=rng.choice(["float32", "float64"]),
            keep_zeros=rng.random() < 0.3,
            recipe=made_by,
        )
        lines, damage = [_wabbit_line(rng) for _ in range(rng.randint(1, 60))], 0.1 * (rng.random() < 0.5)
        lines = [_damaged(rng, line, _VW_BYTES, damage) for line in lines]
        compared = 0
        while lines:
            text = rng.choice([b"", b"\xef\xbb\xbf"]) + b"\n".join([b"1 1 | first", *lines]) + rng.choice([b"", b"\n"])
            stop = _wabbit_agrees(folder / "fuzz.vw", text, options, rng.choice(_BLOCKS))
            compared += (len(lines) + 1 if stop is None else stop) - 1
            lines = [] if stop is None else lines[stop - 1 :]
        yield f"{compared}"


def _wabbit_agrees(path: Path, text: bytes, options: ConvertOptions, block: int) -> int | None:
    """The number of the first line that both refuse."""
    path.write_bytes(text)
    labels = options.labels or ("skip" if options.missing_labels == "skip" else "read")
    rows, stop = reference.wabbit_rows(text, labels, str(options.dtype))
    kept = [row for row in rows if options.labels == "none" or row.label is not None]
    names = None if options.recipe is None else list(_NAMES_OF_RECIPE)
    columns = reference.Columns(options.hash_bits if names is None else None, names)
    for row in rows:  # numbered as they come, those of rows without a label, too
        for key in row.features:
            columns.of(key)
    source, at, said = VwSource([str(path)], options, block_bytes=block), 0, ""
    try:
        for chunk, _ in source.blocks():
            for i in range(chunk.n_rows):
                _same_row(chunk, i, kept[at], columns, options)
                at += 1
    except BadInputError as error:
        said = str(error)
    if "the sum of duplicate entries overflows" in said:  # it names no line
        largest = np.finfo(options.dtype).max
        assert any(sum(abs(value) for values in row.features.values() for value in values) > largest for row in rows), text
        return rows[-1].line if stop is None else stop
    assert (f":{stop}: " in said) if stop is not None else (not said and at == len(kept)), (text, options, stop, said)
    return stop


def _same_row(chunk: Chunk, i: int, row: reference.WabbitRow, columns: reference.Columns, options: ConvertOptions) -> None:
    assert chunk.y[i] == (0.0 if row.label is None else row.label), row
    assert chunk.weight is not None
    assert chunk.weight[i] == (1.0 if row.importance is None else row.importance), row
    expected: dict[int, list[float]] = {}
    for key, values in row.features.items():
        if (feature := columns.of(key)) is not None:
            expected.setdefault(feature, []).extend(values)
    entries = slice(chunk.indptr[i], chunk.indptr[i + 1])
    read = dict(zip(chunk.indices[entries].tolist(), chunk.data[entries].tolist(), strict=True))
    assert list(read) == sorted(set(read)), row
    assert set(read) <= set(expected), row
    for feature, values in expected.items():
        total = float(np.dtype(options.dtype).type(sum(values) if len(values) < 3 else math.fsum(values)))
        exact = read.get(feature, 0.0) == total
        near = len(values) > 2 and abs(read.get(feature, 0.0) - total) <= 1e-6 * math.fsum(map(abs, values))
        assert exact or near, (row, feature, read, total)
        assert options.keep_zeros <= (feature in read), row
        assert options.keep_zeros or read.get(feature, 1.0) != 0, row


FUZZERS: dict[str, Callable[[random.Random, Path], Iterator[str]]] = {"svmlight": svmlight, "vw": wabbit}

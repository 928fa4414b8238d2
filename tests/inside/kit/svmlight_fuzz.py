"""Endless svmlight text from a seed, a third of it damaged, against a slow parser.

The fuzzer is a generator: each step makes one file, shows it to the product, and yields how many lines were compared. A finding
is an AssertionError, or any exception that is no refusal. tests/inside/io/test_texts.py takes the first steps,
scripts/checks/fuzz.py as many as asked.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

from reference.svmlight import parse_file

from streamcut.errors import BadInputError
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.text.svmlight import SvmlightSource

_BLOCKS = [16, 64, 1000, 1 << 14]  # bytes


def _damaged(rng: random.Random, line: bytes, alphabet: bytes, probability: float) -> bytes:
    """With this probability, a few bytes in one place are others."""
    if rng.random() >= probability:
        return line
    at = rng.randrange(len(line) + 1)
    return line[:at] + bytes(rng.choices(alphabet, k=rng.randrange(3))) + line[at + rng.randrange(3) :]


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


def random_line(rng: random.Random, qid: bool) -> bytes:
    """A third of them are damaged."""
    words = [rng.choice(_LABELS), *([b"qid:%d" % rng.randrange(9)] if qid else [])]
    features = [rng.randrange(1, 13) for _ in range(rng.randrange(9))]
    features = sorted(set(features)) if rng.random() < 0.7 else features
    words += [b"%d:%s" % (index, rng.choice(_VALUES)) for index in features]
    line = rng.choice([b" ", b" ", b"\t", b"  "]).join(words) + rng.choice([b"", b"", b" ", b"\r", b"# x", b"#\xff"])
    return _damaged(rng, line, _BYTES, 0.3)


def fuzz(rng: random.Random, folder: Path) -> Iterator[str]:
    """A file of one to sixty lines, or of any bytes."""
    while True:
        qid = rng.random() < 0.5
        lines = b"\n".join(random_line(rng, qid) for _ in range(rng.randint(1, 60)))
        text = lines if rng.random() < 0.7 else bytes(rng.choices(_BYTES + b"\n", k=rng.randint(0, 80)))
        agrees(folder / "fuzz.svm", text, rng.choice(OPTIONS), threads=1, block_bytes=rng.choice(_BLOCKS))
        yield f"{text.count(10) + 1}"


def agrees(path: Path, text: bytes, options: ConvertOptions, least: int = 0, **arguments) -> None:
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
    expected, expected_refused = parse_file(text, options)
    assert refused == expected_refused[:20]
    assert counters["skipped_lines"] == len(expected_refused)
    assert len(rows) >= least
    assert rows == [row[:5] for row in expected]
    assert options.hash_bits or counters["unsorted_rows"] == sum(row.unsorted for row in expected)
    for counter in ("zeros", "underflows", "duplicates"):
        assert counters["explicit_" * (counter == "zeros") + counter] == sum(getattr(row, counter) for row in expected)

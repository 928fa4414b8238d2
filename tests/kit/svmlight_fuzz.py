"""Random lines of svmlight text, and whether both parsers agree on them."""

from __future__ import annotations

import random

from reference.svmlight import parse_file

from streamcut.errors import BadInputError
from streamcut.io.text.svmlight import SvmlightOptions, SvmlightSource

ALPHABET = b"0123456789+-.eE: \t\n\r#qid,abx_\x00\xff"


VALID = b"""1 1:0.5 3:7e-3 20:-1.25 # doc
-1 qid:3 2:1 5:.5 4:3.
+1.5e0 qid:4 1:0 7:12345678901234567890123 8:1e-50

# comment
3:2 1:1 1:2
1,2 3:4\r
2"""


OPTIONS = [
    SvmlightOptions(on_error="skip", max_errors=10**9, group_by_qid=True),
    SvmlightOptions(
        index_base=0, n_features=12, dtype="float64", duplicates="sum", label_weights=True, on_error="skip", group_by_qid=True
    ),
    SvmlightOptions(multilabel=2.0, duplicates="last", keep_zeros=True, on_error="skip", group_by_qid=True),
    SvmlightOptions(label_map={"1": 1.0, "-1": 0.0, "ab": 5.0}, hash_bits=3, on_error="skip", group_by_qid=True),
]


def read(path, options, **arguments):
    """(y, qid, weight, indices, values of each row; refused line numbers; counters)"""
    source = SvmlightSource([str(path)], options, **arguments)
    rows = []
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
    return rows, [reject.line for reject in source.rejects], source.counters


def agrees(path, text, options, least=0, **arguments):
    path.write_bytes(text)
    rows, refused, counters = read(path, options, **arguments)
    expected, expected_refused = parse_file(text, options)
    assert refused == expected_refused
    assert len(rows) >= least
    assert rows == [row[:5] for row in expected]
    if not options.hash_bits:
        assert counters["unsorted_rows"] == sum(row.unsorted for row in expected)
    assert counters["explicit_zeros"] == sum(row.zeros for row in expected)
    assert counters["underflows"] == sum(row.underflows for row in expected)
    assert counters["duplicates"] == sum(row.duplicates for row in expected)


def random_line(generator: random.Random, qid: bool) -> bytes:
    tokens = [generator.choice([b"1", b"-1", b"1", b"-1", b"+1", b"2.5", b"1,2", b"ab", b"1:2"])]
    if qid:
        tokens.append(b"qid:%d" % generator.randrange(9))
    features = [generator.randrange(1, 13) for _ in range(generator.randrange(9))]
    if generator.random() < 0.7:
        features = sorted(set(features))
    values = [
        b"1",
        b"0",
        b"0.25",
        b"-7.",
        b"1e-60",
        b"3e38",
        b"0.1234567",
        b"12345678901234567890.5",
        b"9007199254740993.00000000000000000001",
    ]
    tokens += [b"%d:%s" % (index, generator.choice(values)) for index in features]
    line = bytearray(
        generator.choice([b" ", b" ", b"\t", b"  "]).join(tokens) + generator.choice([b"", b"", b" ", b"\r", b"# x", b"#\xff"])
    )
    if generator.random() < 0.3:
        at = generator.randrange(len(line) + 1)
        line[at : at + generator.randrange(3)] = bytes(generator.choices(ALPHABET.replace(b"\n", b""), k=generator.randrange(3)))
    return bytes(line)

"""Random lines of svmlight text, and whether both parsers agree on them."""

from __future__ import annotations

import re

from reference.svmlight import parse_file

from streamcut.errors import BadInputError
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.text.svmlight import SvmlightSource

_ALL = {"on_error": "skip", "max_errors": 10**9, "group_by_qid": True}
_COUNTED, _FLOATS = {"index_base": 1, "dtype": "float32", **_ALL}, {"dtype": "float64", **_ALL}
OPTIONS = [
    ConvertOptions(**_COUNTED),
    ConvertOptions(index_base=0, n_features=12, duplicates="sum", label_weights=True, **_FLOATS),
    ConvertOptions(multilabel=2.0, duplicates="last", keep_zeros=True, **_COUNTED),
    ConvertOptions(label_map={"1": 1.0, "-1": 0.0, "ab": 5.0}, hash_bits=3, **_COUNTED),
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
    return rows, [int(re.search(r"\.svm:(\d+):", reject)[1]) for reject in source.rejects], source.counters


def agrees(path, text, options, least=0, **arguments):
    path.write_bytes(text)
    rows, refused, counters = read(path, options, **arguments)
    expected, expected_refused = parse_file(text, options)
    assert refused == expected_refused[:20]
    assert counters["skipped_lines"] == len(expected_refused)
    assert len(rows) >= least
    assert rows == [row[:5] for row in expected]
    if not options.hash_bits:
        assert counters["unsorted_rows"] == sum(row.unsorted for row in expected)
    assert counters["explicit_zeros"] == sum(row.zeros for row in expected)
    assert counters["underflows"] == sum(row.underflows for row in expected)
    assert counters["duplicates"] == sum(row.duplicates for row in expected)

"""Every row of the list of bad input that the parser decides; its number begins the id of the test."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from streamcut.errors import BadInputError, MemoryBudgetError, NotFoundError, UsageError, spelled
from streamcut.io.text.svmlight import SvmlightOptions, SvmlightSource

pytestmark = pytest.mark.smoke


def source_of(folder, text: bytes, options=None, **arguments) -> SvmlightSource:
    path = folder / "in.svm"
    path.write_bytes(text)
    return SvmlightSource([str(path)], options, **{"threads": 1, **arguments})


def rows_of(source) -> list[tuple]:
    """(y, {index: value}) of each row, with the qid or the weight as third item where there is one."""
    rows = []
    for chunk, _ in source.blocks():
        for i in range(chunk.n_rows):
            entries = slice(chunk.indptr[i], chunk.indptr[i + 1])
            row = (float(chunk.y[i]), dict(zip(chunk.indices[entries].tolist(), chunk.data[entries].tolist(), strict=True)))
            extra = chunk.qid if chunk.qid is not None else chunk.weight
            rows.append(row if extra is None else (*row, extra[i]))
    return rows


O = SvmlightOptions  # noqa: E741
ACCEPTED = [
    ("1-labels", b"+1 1:0.5\n-1\n1\n0\n2\n3.5\n", O(), [(1, {0: 0.5}), (-1, {}), (1, {}), (0, {}), (2, {}), (3.5, {})], {}),
    ("5-unsorted", b"1 3:3 1:1 2:2\n", O(), [(1, {0: 1, 1: 2, 2: 3})], {"unsorted_rows": 1}),
    ("6-duplicates-sum", b"1 1:1 2:5 1:2\n", O(duplicates="sum"), [(1, {0: 3, 1: 5})], {"duplicates": 1}),
    ("6-duplicates-last", b"1 1:1 2:5 1:2\n", O(duplicates="last"), [(1, {0: 2, 1: 5})], {"duplicates": 1}),
    ("6-duplicates-last-zero", b"1 1:1 1:0\n", O(duplicates="last"), [(1, {})], {"duplicates": 1}),
    ("7-zero", b"1 1:1 3:0 4:-0.0\n", O(), [(1, {0: 1})], {"explicit_zeros": 2}),
    ("7-keep-zeros", b"1 1:1 3:0\n", O(keep_zeros=True), [(1, {0: 1, 2: 0})], {"explicit_zeros": 1}),
    ("8-no-features", b"1\n-1 2:1\n1 \n", O(), [(1, {}), (-1, {1: 1}), (1, {})], {"rows": 3}),
    ("9-blank-and-comments", b"\n  \t\n# one\n  # two\n1 1:1\n", O(), [(1, {0: 1})], {"comment_lines": 2, "lines": 5}),
    ("10-trailing-comment", b"1 1:0.5#doc 7\n-1# x\n2 #\n", O(), [(1, {0: 0.5}), (-1, {}), (2, {})], {"comment_lines": 0}),
    ("11-blanks", b" \t1\t 1:1 \t 2:2 \t\n", O(), [(1, {0: 1, 1: 2})], {}),
    ("12-crlf", b"1 1:1\r\n\r\n-1 2:2 #c\r\n", O(), [(1, {0: 1}), (-1, {1: 2})], {}),
    ("13-no-final-newline", b"1 1:1\n-1 2:2", O(), [(1, {0: 1}), (-1, {1: 2})], {"no_final_newline": 1}),
    ("15-bom", b"\xef\xbb\xbf1 1:1\n", O(), [(1, {0: 1})], {}),
    ("17-comment-beyond-ascii", "1 1:1 # é\n".encode(), O(), [(1, {0: 1})], {}),
    ("19-label-map", b"ham 1:1\nspam 2:1\n", O(label_map={"ham": -1.0, "spam": 1.0}), [(-1, {0: 1}), (1, {1: 1})], {}),
    ("21-multilabel", b"1,2 1:1\n3 1:1\n", O(multilabel=2.0), [(1, {0: 1}), (-1, {0: 1})], {}),
    ("22-multilabel-empty", b" 1:1\n2\n", O(multilabel=2.0), [(-1, {0: 1}), (1, {})], {}),
    ("23-label-weights", b"1:2.5 1:1\n-1 2:1\n", O(label_weights=True), [(1, {0: 1}, 2.5), (-1, {1: 1}, 1.0)], {}),
    ("25-float64", b"1 1:1e39\n", O(dtype="float64"), [(1, {0: 1e39})], {}),
    ("26-underflow", b"1 1:1e-50 2:1\n", O(), [(1, {1: 1})], {"underflows": 1, "explicit_zeros": 0}),
    ("28-numbers", b"1 1:.5 2:5. 3:+.5E-3\n", O(dtype="float64"), [(1, {0: 0.5, 1: 5, 2: 0.0005})], {}),
    ("31-largest-int32", b"1 2147483647:1\n", O(), [(1, {2**31 - 2: 1})], {}),
    ("31-beyond-int32", b"1 1:1 9223372036854775807:1\n", O(wide_index=True), [(1, {0: 1, 2**63 - 2: 1})], {}),
    ("32-qid", b"1 qid:3 1:1\n2 qid:3\n1 qid:9223372036854775807\n", O(), [(1, {0: 1}, 3), (2, {}, 3), (1, {}, 2**63 - 1)], {}),
    ("33-ungrouped-wanted", b"1 qid:3\n1 qid:4\n1 qid:3\n", O(group_by_qid=True), [(1, {}, 3), (1, {}, 4), (1, {}, 3)], {}),
    ("index-base-0", b"1 0:1 3:1\n", O(index_base=0), [(1, {0: 1, 3: 1})], {}),
    ("index-base-auto-0", b"1 3:1\n1 0:1\n", O(index_base=None, n_features=4), [(1, {3: 1}), (1, {0: 1})], {}),
    ("index-base-auto-1", b"1 3:1\n1 1:1\n", O(index_base=None, n_features=4), [(1, {2: 1}), (1, {0: 1})], {}),
]


@pytest.mark.parametrize(
    ("text", "options", "rows", "counters"), [case[1:] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED]
)
def test_accepted(tmp_path, text, options, rows, counters):
    source = source_of(tmp_path, text, options)
    assert rows_of(source) == rows
    assert counters.items() <= source.counters.items()


REFUSED = [
    ("2-index-0", b"1 1:1\n1 0:1\n", O(), "2:3", "--index-base=0"),
    ("3-too-large", b"1 0:1 4:1\n", O(index_base=0, n_features=4), "1:7", "--n-features=4"),
    ("4-negative", b"1 -3:1\n", O(), "1:3", "negative feature index: -3:1"),
    ("6-duplicate", b"1 1:1 22:5 1:2\n", O(), "1:12", "--duplicates=sum"),
    ("6-duplicate-adjacent", b"1 1:1 2:5 02:2\n", O(), "1:11", "the same feature twice in a row: 02:2"),
    ("6-duplicate-of-a-zero", b"1 1:0 1:2\n", O(), "1:7", "the same feature twice"),
    ("9-line-numbers", b"\n# c\n\n1 1:1\n1 x:1\n", O(), "5:3", "not a whole number"),
    ("11-vertical-tab", b"1 1:1\x0b2:1\n", O(), "1:6", "vertical tab"),
    ("11-form-feed", b"1\x0c1:1\n", O(), "1:2", "form feed"),
    ("12-lone-carriage-return", b"1 1:1 \r 2:1\n", O(), "1:7", "carriage return inside a line"),
    ("14-cut-after-colon", b"1 1:1\n1 1:1 2:", O(), "2:7", "is the file cut off?"),
    ("14-cut-after-index", b"1 1:1\n1 1:1 2", O(), "2:7", "expected index:value: 2"),
    ("16-nul", b"1 1:1 \x00\n", O(), "1:7", "NUL byte"),
    ("16-nul-in-comment", b"1 1:1 # a\x00b\n", O(), "1:10", "NUL byte"),
    ("17-beyond-ascii", "1 1:1 é:1\n".encode(), O(), "1:7", "byte 0xc3"),
    ("18-label-nan", b"nan 1:1\n", O(), "1:1", "not finite"),
    ("18-label-inf", b"-inf 1:1\n", O(), "1:1", "not finite"),
    ("18-label-too-large", b"1e400 1:1\n", O(), "1:1", "too large"),
    ("19-string-label", b"spam 1:1\n", O(), "1:1", "--label-map"),
    ("19-label-not-in-map", b"eggs 1:1\n", O(label_map={"spam": 1.0}), "1:1", "not in --label-map: eggs"),
    ("20-no-label", b"1:0.5 2:1\n", O(), "1:1", "the label is missing"),
    ("21-several-labels", b"1,2 1:1\n", O(), "1:1", "--multilabel"),
    ("21-bad-set", b"1,,2 1:1\n", O(multilabel=2.0), "1:1", "label"),
    ("23-label-weight", b"1:2.5 1:1\n", O(), "1:1", "--label-weights"),
    ("23-negative-weight", b"1:-2.5 1:1\n", O(label_weights=True), "1:1", "weight"),
    ("24-nan", b"1 1:nan\n", O(), "1:3", "values must be finite"),
    ("24-inf", b"1 1:-inf\n", O(), "1:3", "values must be finite"),
    ("24-too-large", b"1 1:1e400\n", O(dtype="float64"), "1:3", "too large: 1:1e400"),
    ("25-float32-overflow", b"1 1:1e39\n", O(), "1:3", "--dtype=float64"),
    ("25-sum-overflow", b"1 1:3e38 1:3e38\n", O(duplicates="sum"), "1:10", "sum to more"),
    *[(f"27-{text.decode()}", b"1 1:" + text + b" 2:1\n", O(), "1:3", text.decode()) for text in
      (b"0x1p3", b"1_000", b"1,5", b"1.5abc", b".", b"+", b"--1", b"1e", b"1e+", b"+-1", b"1.2.3", b"e5", b"1e5.0")],
    ("29-libffm", b"1 1:2:0.5\n", O(), "1:3", "libffm"),
    ("30-fraction", b"1 1.5:2\n", O(), "1:3", "not a whole number: 1.5:2"),
    ("30-name", b"1 f1:2\n", O(), "1:3", "--hash-bits"),
    ("30-blank-before-colon", b"1 1 :2\n", O(), "1:3", "expected index:value"),
    ("31-beyond-int64", b"1 9223372036854775808:1\n", O(), "1:3", "too large"),
    ("33-qid-ungrouped", b"# c\n1 qid:3\n\n1 qid:4\n1 qid:3\n", O(), "5", "--group-by-qid"),
    ("34-qid-missing", b"1 qid:3 1:1\n\n1 2:1\n", O(), "3:3", "no qid"),
    ("34-qid-unexpected", b"1 2:1\n1 qid:3 1:1\n", O(), "2:3", "has a qid"),
    ("35-qid-negative", b"1 qid:-3 1:1\n", O(), "1:3", "whole number from 0"),
    ("35-qid-too-large", b"1 qid:9223372036854775808 1:1\n", O(), "1:3", "9223372036854775807"),
    ("35-qid-string", b"1 qid:a 1:1\n", O(), "1:3", "whole number"),
    ("35-qid-at-end", b"1 1:1 qid:3\n", O(), "1:7", "right after the label"),
    ("35-qid-twice", b"1 qid:3 qid:3\n", O(), "1:9", "second qid"),
    ("36-cost", b"1 cost:2 1:1\n", O(), "1:3", "cost: is not supported"),
    ("36-sid", b"1 sid:2 1:1\n", O(), "1:3", "sid: is not supported"),
    ("37-xmlc", b"100 2000 30\n1,2 1:1\n", O(), "1:5", "XMLC"),
    ("37-vw", b"1 |f a:1 b:2\n", O(), "1:3", "Vowpal Wabbit"),
    ("37-csv", b"1,2.5,3.5\n", O(), "1:1", "CSV"),
    ("37-json", b'{"label": 1}\n', O(), "1:1", "JSON"),
    ("39-empty", b"", O(), None, "no rows"),
    ("39-comments-only", b"# a\n\n  # b", O(), None, "no rows"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "place", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(tmp_path, text, options, place, words):
    with pytest.raises(BadInputError) as caught:
        rows_of(source_of(tmp_path, text, options))
    message = str(caught.value)
    assert spelled(words) in message
    assert f"in.svm{f':{place}' if place else ''}: " in message


def test_10_400_digits(tmp_path):
    """28: a mantissa of any length."""
    digits = "1." + "7" * 400
    assert rows_of(source_of(tmp_path, f"1 1:{digits}\n".encode(), O(dtype="float64"))) == [(1, {0: float(digits)})]


def test_43_files_of_different_base(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1 0:1 2:1\n")
    (tmp_path / "b.svm").write_bytes(b"1 1:1 4:1\n")
    source = SvmlightSource([str(tmp_path)], O(index_base=None, n_features=4))
    with pytest.raises(BadInputError, match=r"b\.svm has index 4.*a\.svm has index 0"):
        rows_of(source)


def test_43_qid_across_files(tmp_path):
    """A query may go on in the next file, but not come back later."""
    for name, text in {"a": "1 qid:1\n1 qid:2\n", "b": "1 qid:2\n", "c": "# c\n1 qid:1\n"}.items():
        (tmp_path / name).write_text(text)
    assert len(rows_of(SvmlightSource([str(tmp_path / "a"), str(tmp_path / "b")]))) == 3
    with pytest.raises(BadInputError, match=r"c:2: qid 1 comes back"):
        rows_of(SvmlightSource([str(tmp_path)]))


def test_42_pipes(tmp_path, monkeypatch):
    """A FIFO and standard input are read once, front to back."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(b"1 1:1\n" * 1000))
    writer.start()
    source = SvmlightSource([str(fifo)], block_bytes=100)
    assert rows_of(source) == [(1, {0: 1})] * 1000
    writer.join()
    read, write = os.pipe()
    os.write(write, b"-1 1:1\n")
    os.close(write)
    with os.fdopen(read) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert rows_of(SvmlightSource(["-"])) == [(-1, {0: 1})]
    with pytest.raises(UsageError, match="read once"):
        rows_of(SvmlightSource(["-"], O(index_base=None, n_features=3)))


def test_hashing_collects_names_and_numbers(tmp_path):
    text = b"1 the:1 quick:2 007:3 7:4\n-1 the:1\n"
    (first, second) = rows_of(source_of(tmp_path, text, O(hash_bits=20)))
    assert sorted(first[1].values()) == [1, 2, 7]  # 007 and 7 are one number
    assert second[1].items() <= first[1].items()
    assert max(first[1]) < 2**20
    assert rows_of(source_of(tmp_path, b"1 a:1 b:2 c:4\n" * 3, O(hash_bits=1)))[0][1].keys() <= {0, 1}


def test_skip_reports_what_it_leaves_out(tmp_path):
    text = b"1 1:1\nbad\n1 2:x\n# c\n-1 2:1\n1 0:1\n"
    source = source_of(tmp_path, text, O(on_error="skip"))
    assert rows_of(source) == [(1, {0: 1}), (-1, {1: 1})]
    assert [(reject.line, reject.text) for reject in source.rejects] == [(2, "bad"), (3, "1 2:x"), (6, "1 0:1")]
    assert source.counters["skipped_lines"] == 3
    assert "label" in source.rejects[0].reason
    with pytest.raises(BadInputError, match=r"more than 2 refused lines.*in\.svm:6:3"):
        rows_of(source_of(tmp_path, text, O(on_error="skip", max_errors=2)))


def make_text(qid: bool = False) -> bytes:
    generator = np.random.default_rng(0)
    lines = []
    for i in range(4000):
        indices = np.sort(generator.choice(500, generator.integers(0, 30), replace=False)) + 1
        features = " ".join(f"{j}:{v:.6g}" for j, v in zip(indices, generator.normal(size=len(indices)), strict=True))
        lines.append(f"{i % 3} {f'qid:{4000 - i // 7} ' if qid else ''}{features}" + ["", " # c", "\n"][i % 3])
    return ("\n".join(lines) + "\n").encode()


def as_tuples(blocks):
    return [
        ([None if a is None else a.tolist() for a in (c.indptr, c.indices, c.data, c.y, c.qid)], c.first_row, place)
        for c, place in blocks
    ]


@pytest.mark.parametrize("qid", [False, True])
def test_threads_and_block_sizes_change_nothing(tmp_path, qid):
    text = make_text(qid)
    expected = rows_of(source_of(tmp_path, text))
    assert len(expected) == 4000
    for threads, block_bytes in [(1, 1000), (2, 1000), (3, 16), (2, 50_000)]:
        source = source_of(tmp_path, text, threads=threads, block_bytes=block_bytes)
        assert rows_of(source) == expected
        assert source.counters["rows"] == 4000
        assert source.counters["lines"] == text.count(b"\n")


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("qid", [False, True])
def test_continuing_yields_the_same_blocks_and_counts(tmp_path, compressed, qid):
    import gzip

    text = make_text(qid) + b"bad line\n"
    half = text.index(b"\n", len(text) // 2) + 1
    for name, part in {"a.svm": text[:half], "b.svm": text[half:]}.items():
        (tmp_path / name).write_bytes(gzip.compress(part) if compressed else part)
    paths, options = [str(tmp_path / "a.svm"), str(tmp_path / "b.svm")], O(on_error="skip")
    whole = SvmlightSource(paths, options, block_bytes=5000)
    blocks = as_tuples(whole.blocks())
    assert len(blocks) > 20
    for k in (0, 1, len(blocks) // 2, len(blocks) - 1):
        source = SvmlightSource(paths, options, block_bytes=5000)
        assert as_tuples(source.blocks(blocks[k][2])) == blocks[k:]
        assert source.counters == whole.counters
        assert source.identity == whole.identity
        assert len(source.rejects) == 1


def test_errors_name_the_right_line_in_parallel(tmp_path):
    lines = make_text().splitlines(keepends=True)
    lines.insert(3777, b"1 1:1 oops\n")
    lines.insert(3999, b"never seen\n")
    with pytest.raises(BadInputError, match=r"in\.svm:3778:7: expected index:value: oops"):
        rows_of(source_of(tmp_path, b"".join(lines), threads=3, block_bytes=2000))


def test_long_lines_grow_the_buffer_up_to_a_limit(tmp_path):
    long = b"1 " + b" ".join(b"%d:1" % i for i in range(1, 5000)) + b"\n"
    text = b"1 1:1\n" * 20 + long + b"1 2:1\n"
    rows = rows_of(source_of(tmp_path, text, threads=2, block_bytes=64))
    assert [len(row[1]) for row in rows] == [1] * 20 + [4999, 1]
    with pytest.raises(MemoryBudgetError, match=r"in\.svm:21: .* 33,887 bytes, .* 20,000 for one"):
        rows_of(source_of(tmp_path, text, threads=2, block_bytes=64, held_line=20_000))
    with pytest.raises(BadInputError, match=r"in\.svm:21: .* longer than 20,000 bytes"):
        rows_of(source_of(tmp_path, text, threads=2, block_bytes=64, max_line_bytes=20_000))


def test_stopping_early_leaves_no_thread(tmp_path):
    blocks = source_of(tmp_path, make_text(), threads=2, block_bytes=1000).blocks()
    next(blocks)
    blocks.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("streamcut")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"index_base": 2}, {"index_base": None}, {"dtype": "int8"}, {"duplicates": "first"}, {"hash_bits": 0}, {"hash_bits": 40},
        {"hash_bits": 8, "n_features": 3}, {"n_features": 0}, {"multilabel": 1.0, "label_weights": True}, {"on_error": "ignore"},
        {"label_map": {"a": float("nan")}}, {"max_errors": -1},
    ],
)  # fmt: skip
def test_options_are_checked(wrong):
    with pytest.raises(UsageError):
        SvmlightOptions(**wrong)


def test_42_missing(tmp_path):
    with pytest.raises(NotFoundError):
        SvmlightSource([str(tmp_path / "none.svm")])


def test_real_data_equals_scikit_learn(data_dir, load):
    for name in ("reuters_moneyfx", "mq2008_fold1test"):
        X, y = load(name)
        chunks = [
            c for c, _ in SvmlightSource([str(data_dir / name / "train.svm.xz")], O(dtype="float64", keep_zeros=True)).blocks()
        ]
        assert np.array_equal(np.concatenate([c.y for c in chunks]), y)
        assert np.array_equal(np.concatenate([c.indices for c in chunks]), X.indices)
        assert np.array_equal(np.concatenate([c.data for c in chunks]), X.data)
        assert (chunks[0].qid is None) == (name == "reuters_moneyfx")

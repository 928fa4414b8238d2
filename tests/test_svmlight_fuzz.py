"""Whatever the bytes: the rows that the reference reads, and the lines that it refuses. Numbers equal float() to the bit."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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


@st.composite
def mutated(draw):
    text = bytearray(VALID)
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(text)))
        piece = bytes(draw(st.lists(st.sampled_from(ALPHABET), max_size=4)))
        text[at : at + draw(st.integers(0, 4))] = piece
    return bytes(text)


@pytest.mark.parametrize("options", OPTIONS)
@settings(max_examples=150, deadline=None)
@given(text=st.one_of(mutated(), st.lists(st.sampled_from(ALPHABET), max_size=60).map(bytes)))
def test_any_bytes(tmp_path_factory, options, text):
    agrees(tmp_path_factory.getbasetemp() / "fuzz.svm", text, options, threads=1, block_bytes=64)


@pytest.mark.parametrize("qid", [True, False])
@pytest.mark.parametrize("options", OPTIONS)
def test_many_lines(tmp_path, options, qid):
    """Far more lines than hypothesis would try, a third of them damaged, in one file and in parallel."""
    generator = random.Random(7)
    lines = [random_line(generator, qid) for _ in range(8000)]
    options = SvmlightOptions(**{**vars(options), "max_errors": 10**9})
    agrees(tmp_path / "many.svm", b"\n".join(lines), options, least=1500, block_bytes=5000)


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


def hard_numbers() -> list[str]:
    """Text of numbers on and next to the middles between doubles, of the ends of the range, and of any length."""
    generator = random.Random(3)
    texts = [
        "0",
        "-0",
        "5.",
        ".5",
        "+.5E-3",
        "1" * 308,
        "0." + "3" * 400,
        "9" * 19,
        "9" * 20,
        "18446744073709551616",
        "1e22",
        "1e23",
    ]
    texts += [
        "9007199254740993",
        "9007199254740992.9999999999999999",
        "4.9406564584124654e-324",
        "2.4703282292062328e-324",
        "1e-400",
    ]
    texts += [
        "2.4703282292062327e-324",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "1.7976931348623157e308",
        "0" * 30 + "7.5",
    ]
    texts += ["1.7976931348623158e308", "0." + "0" * 400 + "1e401", "1" + "0" * 400 + "e-400", "1e-000000000000000000000005"]
    for _ in range(3000):
        bits = generator.getrandbits(63)
        x = struct.unpack("d", struct.pack("Q", bits))[0]
        if not np.isfinite(x) or x > 1e300:
            continue
        texts += [repr(x), f"{x:.{generator.randrange(1, 30)}e}", f"{x:.16g}"]
    for _ in range(2000):
        digits = generator.randrange(1, 25)
        text = str(generator.getrandbits(4 * digits))
        at = generator.randrange(len(text) + 1)
        texts.append(f"{text[:at]}.{text[at:]}e{generator.randrange(-60, 60)}")
    texts += middles(generator)
    return texts


def middles(generator: random.Random) -> list[str]:
    """Exact decimal expansions of the middle between two doubles, and one unit of a far digit above and below."""
    texts = []
    for _ in range(300):
        mantissa, power = generator.getrandbits(52) | 1 << 52, generator.randrange(-80, 60)
        twice = 2 * mantissa + 1
        if power >= 0:
            texts += [str((twice << power) + k) for k in (-1, 0, 1)]
        else:
            digits = str(twice * 5**-power)
            texts += [f"{int(digits + '00') + k}e{power - 2}" for k in (-1, 0, 1)]
    return texts


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_equal_float_to_the_bit(tmp_path, dtype):
    limit = float(np.finfo(dtype).max)
    texts = [text for text in hard_numbers() if abs(float(text)) <= limit]
    values = np.array([float(text) for text in texts])
    (tmp_path / "numbers.svm").write_text("".join(f"{text} 1:{text} 2:-{text.lstrip('+-')}\n" for text in texts))
    options = SvmlightOptions(dtype=dtype, keep_zeros=True)
    chunks = [chunk for chunk, _ in SvmlightSource([str(tmp_path / "numbers.svm")], options, block_bytes=1 << 16).blocks()]
    y = np.concatenate([chunk.y for chunk in chunks])
    data = np.concatenate([chunk.data for chunk in chunks]).reshape(-1, 2)
    assert y.tobytes() == values.tobytes()
    assert data[:, 1].tobytes() == (-np.abs(values).astype(dtype)).tobytes()
    assert np.abs(data[:, 0]).tobytes() == np.abs(values).astype(dtype).tobytes()

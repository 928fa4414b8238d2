"""Whatever the bytes: the rows that a slow parser reads, and the lines that it refuses. Numbers equal float() to the bit."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from sklearn.feature_extraction import FeatureHasher

from inside.kit.svmlight_fuzz import OPTIONS, agrees, fuzz, random_line
from streamcut.errors import BadInputError, MemoryBudgetError
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.text.svmlight import SvmlightSource
from streamcut.io.text.vw import VwSource


def test_the_first_files_of_the_fuzzer(tmp_path):
    """scripts/checks/fuzz.py goes on."""
    steps = fuzz(random.Random(0), tmp_path)
    for _ in range(60):
        next(steps)
    steps.close()


@pytest.mark.parametrize("qid", [True, False])
@pytest.mark.parametrize("options", OPTIONS)
def test_many_lines_of_svmlight_in_parallel(tmp_path, options, qid):
    generator = random.Random(7)
    lines = [random_line(generator, qid) for _ in range(4000)]
    agrees(tmp_path / "many.svm", b"\n".join(lines), options, least=750, block_bytes=5000)


def test_long_lines_grow_the_buffer_up_to_a_limit(tmp_path):
    text = b"1 1:1\n" * 20 + b"1 " + b" ".join(b"%d:1" % i for i in range(1, 5000)) + b"\n1 2:1\n"
    (tmp_path / "in.svm").write_bytes(text)

    def sizes(options=ConvertOptions(), **more) -> list[int]:  # noqa: B008
        source = SvmlightSource([str(tmp_path / "in.svm")], options, threads=2, block_bytes=64, **more)
        return [size for chunk, _ in source.blocks() for size in np.diff(chunk.indptr).tolist()]

    assert sizes() == [1] * 20 + [4999, 1]
    with pytest.raises(MemoryBudgetError, match=r"in\.svm:21: .* 33,887 bytes, .* 20,000 for one"):
        sizes(held_line=20_000)
    with pytest.raises(BadInputError, match=r"in\.svm:21: .* longer than 20,000 bytes"):
        sizes(ConvertOptions(max_line_bytes=20_000))


ENDS = """0 -0 5. .5 +.5E-3 18446744073709551616 1e22 1e23 9007199254740993 9007199254740992.9999999999999999 1e-400
4.9406564584124654e-324 2.4703282292062328e-324 2.4703282292062327e-324 2.2250738585072011e-308 2.2250738585072014e-308
1.7976931348623157e308 1.7976931348623158e308 1e-000000000000000000000005"""


def hard_numbers() -> list[str]:
    """Text of numbers on and next to the middles between doubles, of the ends of the range, and of any length."""
    generator = random.Random(3)
    texts = ["1" * 308, "0." + "3" * 400, "9" * 19, "9" * 20, "0" * 30 + "7.5", f"0.{'0' * 400}1e401", f"1{'0' * 400}e-400"]
    texts += ENDS.split()
    for _ in range(3000):
        x = struct.unpack("d", struct.pack("Q", generator.getrandbits(63)))[0]
        if np.isfinite(x) and x <= 1e300:
            texts += [repr(x), f"{x:.{generator.randrange(1, 30)}e}", f"{x:.16g}"]
    for _ in range(2000):
        text = str(generator.getrandbits(4 * generator.randrange(1, 25)))
        at = generator.randrange(len(text) + 1)
        texts.append(f"{text[:at]}.{text[at:]}e{generator.randrange(-60, 60)}")
    for _ in range(300):  # the exact middle between two doubles, and one unit of a far digit above and below
        twice, power = 2 * (generator.getrandbits(52) | 1 << 52) + 1, generator.randrange(-80, 60)
        for k in (-1, 0, 1):
            texts.append(str((twice << power) + k) if power >= 0 else f"{int(f'{twice * 5**-power}00') + k}e{power - 2}")
    return texts


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_equal_float_to_the_bit(tmp_path, dtype):
    limit = float(np.finfo(dtype).max)
    texts = [text for text in hard_numbers() if abs(float(text)) <= limit]
    values = np.array([float(text) for text in texts])
    (tmp_path / "numbers.svm").write_text("".join(f"{text} 1:{text} 2:-{text.lstrip('+-')}\n" for text in texts))
    options = ConvertOptions(dtype=dtype, keep_zeros=True)
    chunks = [chunk for chunk, _ in SvmlightSource([str(tmp_path / "numbers.svm")], options, block_bytes=1 << 16).blocks()]
    data = np.concatenate([chunk.data for chunk in chunks]).reshape(-1, 2)
    assert np.concatenate([chunk.y for chunk in chunks]).tobytes() == values.tobytes()
    assert data[:, 1].tobytes() == (-np.abs(values).astype(dtype)).tobytes()
    assert np.abs(data[:, 0]).tobytes() == np.abs(values).astype(dtype).tobytes()


WABBIT = {  # line: (label, importance, {key: value})
    "1 1 |f a b:2 c": (1.0, 1.0, {"f^a": 1.0, "f^b": 2.0, "f^c": 1.0}),
    "-1 2.5 'first|f a:0.5 |g:3 x y:-1": (-1.0, 2.5, {"f^a": 0.5, "g^x": 3.0, "g^y": -3.0}),
    "1 0.5 tag|f a a b": (1.0, 0.5, {"f^a": 2.0, "f^b": 1.0}),
    "-1 | plain:1e-3 words häßlich": (-1.0, 1.0, {"plain": 1e-3, "words": 1.0, "häßlich": 1.0}),
    "1 1 |f a |f b |h:0.1 z:10": (1.0, 1.0, {"f^a": 1.0, "f^b": 1.0, "h^z": 1.0}),
    "\t-1 1  | spaced   out\t \r": (-1.0, 1.0, {"spaced": 1.0, "out": 1.0}),
    "1 1 |": (1.0, 1.0, {}),
    "-1 1": (-1.0, 1.0, {}),
    "1 1 |f|g x zero:0": (1.0, 1.0, {"g^x": 1.0}),
    "-1 1 |site a=b,c *x:.5 1234:2 ^": (-1.0, 1.0, {"site^a=b,c": 1.0, "site^*x": 0.5, "site^1234": 2.0, "site^^": 1.0}),
    "1 1 | 0.1:9007199254740993.00000000000000000001": (1.0, 1.0, {"0.1": 9007199254740994.0}),
}


@pytest.mark.parametrize("block", [16, 64, 1000])
@pytest.mark.parametrize("bits", [None, 10])
def test_rows_of_vowpal_wabbit_whatever_the_blocks_and_hashes_are_those_of_feature_hasher(tmp_path, bits, block):
    (tmp_path / "x.vw").write_text("\ufeff" + "\n".join([*WABBIT, ""]), newline="")
    source = VwSource([str(tmp_path / "x.vw")], ConvertOptions(dtype="float64", hash_bits=bits), block_bytes=block)
    rows = []
    for chunk, _ in source.blocks():
        for i in range(chunk.n_rows):
            cut = slice(chunk.indptr[i], chunk.indptr[i + 1])
            values = dict(zip(chunk.indices[cut].tolist(), chunk.data[cut].tolist(), strict=True))
            rows.append((chunk.y[i], 1.0 if chunk.weight is None else chunk.weight[i], values))
    expected, names = [*WABBIT.values()], source.recipe().names
    if bits is None:
        assert [(y, weight, {names[j]: value for j, value in values.items()}) for y, weight, values in rows] == expected
    else:
        hashed = FeatureHasher(1 << bits, alternate_sign=False).transform([features for *_, features in expected]).toarray()
        assert [{j: row[j] for j in np.flatnonzero(row).tolist()} for row in hashed] == [values for *_, values in rows]

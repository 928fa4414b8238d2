"""Whatever the bytes: the rows that the reference reads, and the lines that it refuses. Numbers equal float() to the bit."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from kit.svmlight_fuzz import random_line

from inside.kit.svmlight_fuzz import OPTIONS, agrees
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.text.svmlight import SvmlightSource


@pytest.mark.parametrize("qid", [True, False])
@pytest.mark.parametrize("options", OPTIONS)
def test_many_lines(tmp_path, options, qid):
    """Far more lines than hypothesis would try, a third of them damaged, in one file and in parallel."""
    generator = random.Random(7)
    lines = [random_line(generator, qid) for _ in range(4000)]
    agrees(tmp_path / "many.svm", b"\n".join(lines), options, least=750, block_bytes=5000)


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
    options = ConvertOptions(dtype=dtype, keep_zeros=True)
    chunks = [chunk for chunk, _ in SvmlightSource([str(tmp_path / "numbers.svm")], options, block_bytes=1 << 16).blocks()]
    y = np.concatenate([chunk.y for chunk in chunks])
    data = np.concatenate([chunk.data for chunk in chunks]).reshape(-1, 2)
    assert y.tobytes() == values.tobytes()
    assert data[:, 1].tobytes() == (-np.abs(values).astype(dtype)).tobytes()
    assert np.abs(data[:, 0]).tobytes() == np.abs(values).astype(dtype).tobytes()

"""svmlight text in blocks, by several threads, from pipes and from where an earlier run stopped.

What single lines mean is in tests/hostile/test_bad_input.py and, against a slow parser, in test_svmlight_fuzz.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from streamcut.errors import BadInputError, MemoryBudgetError
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.text.svmlight import SvmlightSource

pytestmark = pytest.mark.smoke


def source_of(folder, text: bytes, options=None, **arguments) -> SvmlightSource:
    path = folder / "in.svm"
    path.write_bytes(text)
    return SvmlightSource([str(path)], options or O(), **{"threads": 1, **arguments})


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


O = ConvertOptions  # noqa: E741


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


def test_long_lines_grow_the_buffer_up_to_a_limit(tmp_path):
    long = b"1 " + b" ".join(b"%d:1" % i for i in range(1, 5000)) + b"\n"
    text = b"1 1:1\n" * 20 + long + b"1 2:1\n"
    rows = rows_of(source_of(tmp_path, text, threads=2, block_bytes=64))
    assert [len(row[1]) for row in rows] == [1] * 20 + [4999, 1]
    with pytest.raises(MemoryBudgetError, match=r"in\.svm:21: .* 33,887 bytes, .* 20,000 for one"):
        rows_of(source_of(tmp_path, text, threads=2, block_bytes=64, held_line=20_000))
    with pytest.raises(BadInputError, match=r"in\.svm:21: .* longer than 20,000 bytes"):
        rows_of(source_of(tmp_path, text, O(max_line_bytes=20_000), threads=2, block_bytes=64))

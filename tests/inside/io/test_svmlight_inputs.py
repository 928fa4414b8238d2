"""Which files are read, how they are decompressed, and whether groups stand together."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import os

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from streamcut.errors import BadInputError, MemoryBudgetError, NotFoundError, UsageError
from streamcut.io.sources.source import GroupCheck
from streamcut.io.text.inputs import find_inputs, open_bytes

COMPRESS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


class Pipe(io.BytesIO):
    """Bytes that arrive in small pieces and can't be sought."""

    def seekable(self) -> bool:
        return False

    def read(self, size=-1) -> bytes:
        return super().read(min(size, 3) if size > 0 else size)

    def readinto(self, target) -> int:
        return super().readinto(memoryview(target)[:7])


def decompressed(data: bytes, piece: int = 1 << 16, kind=io.BytesIO) -> bytes:
    stream, _ = open_bytes(kind(data), "name")
    out, buffer = [], bytearray(piece)
    while n := stream.readinto(buffer):
        out.append(bytes(buffer[:n]))
    return b"".join(out)


TEXT = os.urandom(3000) + b"1 1:1\n" * 30_000


@pytest.mark.parametrize("kind", COMPRESS)
def test_streams_one_behind_the_other(kind):
    compress = COMPRESS[kind]
    assert open_bytes(io.BytesIO(compress(b"")), "name")[1] == kind
    assert decompressed(compress(TEXT)) == TEXT
    assert decompressed(compress(TEXT), piece=1000, kind=Pipe) == TEXT
    assert decompressed(compress(TEXT) + compress(b"") + compress(b"end")) == TEXT + b"end"
    if kind in ("gzip", "bzip2"):
        assert decompressed(compress(TEXT) + bytes(512)) == TEXT  # blocks of a tape
    assert decompressed(compress(b"")) == b""


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("damage", ["byte", "cut 1", "cut 100", "cut to 10", "junk", "other"])
def test_damage_is_refused(kind, damage):
    data = bytearray(COMPRESS[kind](TEXT))
    if damage == "byte":
        data[1000] ^= 4
    elif damage.startswith("cut"):
        data = data[: 10 if damage.endswith("10") else -int(damage.split()[1])]
    else:
        data += b"junk" if damage == "junk" else COMPRESS["gzip" if kind == "xz" else "xz"](b"1")
    if kind in ("bzip2", "xz") and damage in ("junk", "other"):
        assert decompressed(bytes(data)) == TEXT  # as their programs read it
        return
    with pytest.raises(BadInputError, match=f"name: .*{kind}"):
        decompressed(bytes(data))


@pytest.mark.parametrize("text", [b"", b"1", b"BZ", b"1 1:1\n" * 1000])
def test_plain_text(text):
    assert decompressed(text) == text
    assert decompressed(text, kind=Pipe) == text


def test_zstd_bombs_take_bounded_memory():
    import tracemalloc

    data = COMPRESS["zstd"](bytes(1 << 30))
    tracemalloc.start()
    stream, _ = open_bytes(io.BytesIO(data), "name")
    buffer = bytearray(1 << 20)
    assert sum(iter(lambda: stream.readinto(buffer), 0)) == 1 << 30
    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()


def test_42_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d" / "e").mkdir(parents=True)
    for name in ("b.svm", "a.svm", "d/z.svm", "d/e/c.svm", "d/.hidden", "[x].svm"):
        (tmp_path / name).write_text("1\n")
    names = [found.name for found in find_inputs(["b.svm", "a.svm", "d"])]
    assert names == ["b.svm", "a.svm", "d/e/c.svm", "d/z.svm"]
    assert [found.name for found in find_inputs(["[ab].svm"])] == ["a.svm", "b.svm"]
    assert [found.name for found in find_inputs(["d/**/*.svm"])] == ["d/e/c.svm", "d/z.svm"]
    assert [found.name for found in find_inputs(["[x].svm"])] == ["[x].svm"]  # what exists is no pattern
    assert find_inputs(["a.svm"])[0].size == 2
    (tmp_path / "empty").mkdir()
    for missing in ("none", "*.txt", "empty"):
        with pytest.raises(NotFoundError, match=missing.replace("*", r"\*")):
            find_inputs([missing])
    for twice in (["a.svm", "./a.svm"], ["-", "-"], []):
        with pytest.raises(UsageError):
            find_inputs(twice)


def test_42_unreadable(tmp_path, monkeypatch):
    path = tmp_path / "a.svm"
    path.write_text("1\n")
    found = find_inputs([str(path)])[0]
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests as root can read everything
    with pytest.raises(NotFoundError, match="permission"):
        find_inputs([str(path)])
    path.unlink()
    with pytest.raises(NotFoundError, match="No such file"):
        found.open()


@settings(max_examples=200, deadline=None)
@given(qid=st.lists(st.integers(0, 12), max_size=40), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_first_repeat_is_the_first_row_of_a_second_run(qid, cuts):
    expected, seen = None, []
    for i, q in enumerate(qid):
        if q in seen and seen[-1] != q:
            expected = i
            break
        if q not in seen:
            seen.append(q)
    check, found = GroupCheck(), None
    bounds = sorted({0, len(qid), *(cut for cut in cuts if cut < len(qid))})
    for start, stop in itertools.pairwise(bounds):
        row = check.first_repeat(np.array(qid[start:stop], dtype=np.int64))
        if row is not None:
            found = start + row
            break
    assert found == expected


def test_groups_beyond_memory_must_be_sorted(monkeypatch):
    monkeypatch.setattr("streamcut.io.sources.source.MAX_GROUPS", 1000)
    check = GroupCheck()
    for start in range(0, 10_000, 100):
        assert check.first_repeat(np.arange(start, start + 100)) is None
    with pytest.raises(MemoryBudgetError, match="group_by_qid=True"):
        check.first_repeat(np.array([10_000, 5]))


def test_many_unsorted_groups():
    ids = np.random.default_rng(0).permutation(200_000)
    check = GroupCheck()
    for part in np.array_split(ids, 100):
        assert check.first_repeat(np.repeat(part, 2)) is None
    assert check.first_repeat(ids[77:78]) == 0


def test_links_and_twins(tmp_path, monkeypatch):
    """A hard link is a file of its own, a symbolic one is the file that it leads to; hidden folders are left out."""
    monkeypatch.chdir(tmp_path)
    for name in ("d/a.svm", "d/e.f/b.svm", "d/e/b.svm", "d/.git/c.svm", "d/.c.svm"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1 1:1\n")
    assert [found.name for found in find_inputs(["d/"])] == ["d/a.svm", "d/e/b.svm", "d/e.f/b.svm"]
    monkeypatch.chdir(tmp_path / "d")
    assert [found.name for found in find_inputs(["."])] == ["a.svm", "e/b.svm", "e.f/b.svm"]
    os.link("a.svm", "twin.svm")
    assert len(find_inputs(["."])) == 4
    os.symlink("a.svm", "link.svm")
    with pytest.raises(UsageError, match="named twice"):
        find_inputs(["."])

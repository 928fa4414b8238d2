"""A conversion that dies at any moment is no store, and --resume ends with the same bytes."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from kit.store_crash import content, forked
from reference.rows import make_rows, write_svmlight

import streamcut
from streamcut import convert
from streamcut.errors import UsageError

pytestmark = [pytest.mark.smoke, pytest.mark.process]

WAYS = {
    "plain": {},
    "skipping": {"on_error": "skip"},
    "shuffled": {"shuffle": 3},
    "split": {"split": 0.6},
    "shuffled split": {"shuffle": 3, "split": 0.6},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """1,500 rows of about 5,000 entries, 13 shards, with a line in ten that is none."""
    path = write_svmlight(tmp_path_factory.mktemp("text") / "a.svm", make_rows(1500, 4))
    lines = path.read_text().splitlines(keepends=True)
    for i in range(0, 1500, 10):
        lines.insert(i, "# a comment\n")
    path.write_text("".join(lines))
    spoiled = [line if i % 10 else "spoiled\n" for i, line in enumerate(lines)]
    (path.parent / "spoiled.svm").write_text("".join(spoiled))
    write_svmlight(path.parent / "groups.svm", make_rows(1500, 4, groups=5))
    return path


def run(source: Path, folder: Path, failpoint: str = "", **options) -> int:
    """Convert in a process of its own; its exit code, or minus the signal that ended it."""
    return forked(lambda: convert(source, folder / "a.zarr", shard_nnz=400, **options), failpoint)


def source_of(way: str, text: Path) -> Path:
    return text.parent / "spoiled.svm" if way == "skipping" else text


@pytest.fixture(scope="module")
def undisturbed(text, tmp_path_factory) -> dict[str, dict]:
    results = {}
    for way, options in WAYS.items():
        folder = tmp_path_factory.mktemp("undisturbed")
        convert(source_of(way, text), folder / "a.zarr", shard_nnz=400, **options)
        results[way] = content(folder)
    return results


@pytest.mark.parametrize("way", WAYS)
def test_killed_again_and_again(text, undisturbed, tmp_path, way):
    """Each run dies somewhere else and is resumed by the next, until one gets through."""
    deaths = 0
    for point in ("convert.journal:8", "store.put_rename:19", "convert.journal:2", "convert.manifest:1", "convert.done:1"):
        code = run(source_of(way, text), tmp_path, f"{point}:kill", resume=True, **WAYS[way])
        assert code in (0, -signal.SIGKILL)
        deaths += code != 0
    assert run(source_of(way, text), tmp_path, resume=True, **WAYS[way]) == 0
    assert content(tmp_path) == undisturbed[way]
    assert deaths >= 3


def test_groups_are_checked_again_after_a_resume(text, tmp_path):
    """Late rows bring back a qid of the first: the resumed run has to know."""
    lines = (text.parent / "groups.svm").read_text().splitlines(keepends=True)
    mixed = tmp_path / "mixed.svm"
    mixed.write_text("".join([*lines[:1400], lines[0], *lines[1400:]]))
    # One block holds all of this text, and is checked before any of it is stored: the refusal needs a run that got further.
    (tmp_path / "store").mkdir()
    good = tmp_path / "store" / "in.svm"
    good.write_text("".join(lines))
    assert run(good, tmp_path / "store", "convert.journal:8:kill") == -signal.SIGKILL
    times = good.stat()
    good.write_bytes(mixed.read_bytes()[: times.st_size])
    os.utime(good, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(streamcut.errors.BadInputError, match=r"in\.svm:1401: qid 0 comes back"):
        convert(good, tmp_path / "store" / "a.zarr", shard_nnz=400, resume=True)


def test_resume_goes_on_and_refuses_other_data_and_other_options(text, tmp_path):
    """Other threads and another memory make no other conversion."""
    source = Path(shutil.copy(text, tmp_path / "b.svm"))
    assert run(source, tmp_path, "convert.journal:10:kill") == -signal.SIGKILL
    with pytest.raises(UsageError, match="keep_zeros was False and is True"):
        convert(source, tmp_path / "a.zarr", resume=True, keep_zeros=True)
    whole = source.read_bytes(), source.stat()
    source.write_bytes(whole[0] + b"1 1:1\n")
    with pytest.raises(UsageError, match="inputs was"):
        convert(source, tmp_path / "a.zarr", resume=True)
    source.write_bytes(whole[0])
    os.utime(source, ns=(whole[1].st_atime_ns, whole[1].st_mtime_ns))
    assert convert(source, tmp_path / "a.zarr", resume=True, threads=1, memory="8GB").resumed_rows > 100


def test_what_is_left_beside_a_finished_store_is_removed(text, undisturbed, tmp_path):
    """By a process that was killed between the manifest and its end."""
    assert run(text, tmp_path) == 0
    (tmp_path / "a.zarr/.lock").touch()
    assert run(text, tmp_path, resume=True) == 0
    assert content(tmp_path) == undisturbed["plain"]

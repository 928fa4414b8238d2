"""A conversion that dies at any moment leaves nothing under a final name, and --resume ends with the same bytes."""

import os
import random
import shutil
import signal
from pathlib import Path

import kit.shared.convert_resume
import pytest
from kit.shared.convert_resume import finals
from kit.waiting import files_in, has_ended, until

import streamcut
import streamcut.foundation.files
from streamcut import convert
from streamcut.errors import ExitCode, LockedError, StreamcutError, UsageError
from streamcut.foundation.systems import resident_bytes
from streamcut.io.stores.zarr_layout import chunk_path

text = kit.shared.convert_resume.text


pytestmark = [pytest.mark.smoke, pytest.mark.process]

WAYS = {
    "plain": {},
    "skipping": {"on_error": "skip"},
    "shuffled": {"shuffle": 3},
    "split": {"split": 0.6},
    "shuffled split": {"shuffle": 3, "split": 0.6},
}


def start(source: Path, folder: Path, failpoint: str = "", **options) -> int:
    """The process id of a conversion in a process of its own, forked: importing everything anew would take most of the time."""
    pid = os.fork()
    if pid:
        return pid
    os.environ["STREAMCUT_FAILPOINT"] = failpoint
    streamcut.foundation.files._hits.clear()
    code, message = 1, ""
    try:
        convert(source, folder / "a.zarr", shard_nnz=400, **options)
        code = 0
    except StreamcutError as error:
        code, message = int(error.exit_code), str(error)
    finally:
        (folder.parent / f"{folder.name}.message").write_text(message)
        os._exit(code)


def run(source: Path, folder: Path, failpoint: str = "", **options) -> tuple[int, str]:
    """(exit code, or -9 for killed; the error's message) of a conversion."""
    _, status = os.waitpid(start(source, folder, failpoint, **options), 0)
    code = os.waitstatus_to_exitcode(status)
    return code, (folder.parent / f"{folder.name}.message").read_text() if code >= 0 else ""


def source_of(way: str, text: Path) -> Path:
    return text.parent / "spoiled.svm" if way == "skipping" else text


@pytest.fixture(scope="module")
def undisturbed(text, tmp_path_factory) -> dict[str, dict]:
    results = {}
    for way, options in WAYS.items():
        folder = tmp_path_factory.mktemp("undisturbed")
        convert(source_of(way, text), folder / "a.zarr", shard_nnz=400, **options)
        results[way] = finals(folder)
    return results


@pytest.mark.parametrize("way", WAYS)
def test_killed_anywhere_and_resumed_gives_the_same_bytes(text, undisturbed, tmp_path, way):
    """Each run dies somewhere else and is resumed by the next, until one gets through."""
    deaths = 0
    points = ["journal:8", "chunk_rename:9", "journal:9", "manifest:1", "rename:1", "rename:2"]
    for point in points:
        code, message = run(source_of(way, text), tmp_path, f"convert.{point}:kill", resume=True, **WAYS[way])
        assert code in (0, -signal.SIGKILL), message
        deaths += code != 0
        for name, content in finals(tmp_path).items():
            assert content == undisturbed[way][name], f"{name} bears its final name and is not complete"
    assert run(source_of(way, text), tmp_path, resume=True, **WAYS[way]) == (0, "")
    assert finals(tmp_path) == undisturbed[way]
    assert deaths >= 3
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("seed", range(6))
def test_kill_at_a_random_time(text, undisturbed, tmp_path, seed):
    chance = random.Random(seed)
    way = list(WAYS)[seed % len(WAYS)]
    pid = start(source_of(way, text), tmp_path, **WAYS[way])
    partial, wanted = tmp_path / "a.zarr.partial", chance.randrange(1, 25)
    until(lambda: has_ended(pid) or files_in(partial) >= wanted, f"file {wanted}")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert run(source_of(way, text), tmp_path, resume=True, **WAYS[way]) == (0, "")
    assert finals(tmp_path) == undisturbed[way]


def test_groups_are_checked_again_after_a_resume(text, tmp_path):
    """Late rows bring back a qid of the first: the resumed run has to know."""
    lines = (text.parent / "groups.svm").read_text().splitlines(keepends=True)
    mixed = tmp_path / "mixed.svm"
    mixed.write_text("".join([*lines[:1400], lines[0], *lines[1400:]]))
    # One block holds all of this text, and is checked before any of it is stored: the refusal needs a run that got further.
    (tmp_path / "store").mkdir()
    good = tmp_path / "store" / "in.svm"
    good.write_text("".join(lines))
    assert run(good, tmp_path / "store", "convert.journal:8:kill")[0] == -signal.SIGKILL
    times = good.stat()
    good.write_bytes(mixed.read_bytes()[: times.st_size])
    os.utime(good, ns=(times.st_atime_ns, times.st_mtime_ns))
    code, message = run(good, tmp_path / "store", resume=True)
    assert code == ExitCode.BAD_INPUT
    assert "in.svm:1401: qid 0 comes back" in message


def test_resume_goes_on_and_does_not_start_anew(text, tmp_path):
    """Other threads and another memory make no other conversion; what was stored is not written again."""
    assert run(text, tmp_path, "convert.journal:10:kill")[0] == -signal.SIGKILL
    written = os.stat(chunk_path(tmp_path / "a.zarr.partial" / "store", 0, "data"))
    report = convert(text, tmp_path / "a.zarr", resume=True, threads=1, memory=resident_bytes() + 150 * 10**6)
    assert report.resumed_rows > 100
    again = os.stat(chunk_path(tmp_path / "a.zarr", 0, "data"))
    assert (again.st_ino, again.st_mtime_ns) == (written.st_ino, written.st_mtime_ns)


def test_resume_refuses_other_data_and_other_options(text, tmp_path):
    source = Path(shutil.copy(text, tmp_path / "b.svm"))
    assert run(source, tmp_path, "convert.journal:8:kill")[0] == -signal.SIGKILL
    with pytest.raises(UsageError, match="keep_zeros was False and is True"):
        convert(source, tmp_path / "a.zarr", resume=True, keep_zeros=True)
    with open(source, "a") as file:
        file.write("1 1:1\n")
    with pytest.raises(UsageError, match="inputs was"):
        convert(source, tmp_path / "a.zarr", resume=True)


def test_two_conversions_to_one_output(text, tmp_path):
    pid = start(text, tmp_path, "convert.journal:2:sleep=30")
    try:
        until((tmp_path / "a.zarr.partial" / "journal.jsonl").exists, "the journal")
        with pytest.raises(LockedError, match="being written"):
            convert(text, tmp_path / "a.zarr")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    convert(text, tmp_path / "a.zarr")


@pytest.mark.parametrize("way", ["plain", "shuffled"])
def test_a_full_disk_can_be_resumed(text, undisturbed, tmp_path, way):
    code, message = run(text, tmp_path, "convert.chunk_tmp:20:ENOSPC", **WAYS[way])
    assert code == ExitCode.DISK_FULL
    assert "No space left" in message
    assert finals(tmp_path) == {}
    assert run(text, tmp_path, resume=True, **WAYS[way]) == (0, "")
    assert finals(tmp_path) == undisturbed[way]

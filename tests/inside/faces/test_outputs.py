"""Outputs of commands go where they were sent (FAULTS 46: devices, pipes, links), and replace nothing unasked (44, 45)."""

from __future__ import annotations

import os
import signal

import pytest

from inside.kit.models import make_model
from streamcut import save_model
from streamcut.errors import LockedError
from streamcut.foundation.files import temporary_name
from streamcut.io.places.outputs import AppearedError, output, remove_leftovers, reserved

pytestmark = pytest.mark.process


def test_45_an_output_that_appears_meanwhile_stays(tmp_path):
    def write() -> None:
        with output(tmp_path / "x", prefix="x", replace=False) as file:
            file.write(b"ours")
            (tmp_path / "x").write_text("theirs")

    with pytest.raises(AppearedError, match="appeared meanwhile"):
        write()
    assert (tmp_path / "x").read_text() == "theirs"
    assert os.listdir(tmp_path) == ["x"]


def test_45_a_file_system_without_links_replaces_nothing_either(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError("no hard links")

    monkeypatch.setattr(os, "link", refuse)
    with output(tmp_path / "x", prefix="x", replace=False) as file:
        file.write(b"ours")
    with pytest.raises(AppearedError), output(tmp_path / "x", prefix="x", replace=False) as file:
        file.write(b"other")
    assert (tmp_path / "x").read_bytes() == b"ours"
    assert os.listdir(tmp_path) == ["x"]


def test_45_a_reservation_ends_with_its_process_and_leaves_files_of_others(tmp_path):
    with reserved(tmp_path / "m.npz"), pytest.raises(LockedError), reserved(tmp_path / "m.npz"):
        raise AssertionError
    assert os.listdir(tmp_path) == []
    (tmp_path / ".m.npz.lock").write_text("notes")
    with reserved(tmp_path / "m.npz"):
        pass
    assert (tmp_path / ".m.npz.lock").read_text() == "notes"


@pytest.mark.parametrize("point", ["model_tmp", "model_fsync", "model_rename"])
def test_44_what_a_killed_write_left_goes_with_the_next(tmp_path, point):
    model = tmp_path / "m.npz"
    child = os.fork()
    if child == 0:
        os.environ["STREAMCUT_FAILPOINT"] = f"{point}:1:kill"
        save_model(make_model(), model)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert os.listdir(tmp_path) == [f".m.npz.{child}.tmp"]
    (tmp_path / ".m.npz.lock").touch()
    others = [".m.npz.notes.tmp", f".n.npz.{child}.tmp", f"m.npz.{child}.tmp", f".m.npz.{os.getppid()}.tmp"]
    for name in others:  # of other files, or of a process that lives
        (tmp_path / name).write_text("mine")
    (tmp_path / f".m.npz.{child + 2**22}.tmp").mkdir()
    save_model(make_model(), model)
    assert sorted(os.listdir(tmp_path)) == sorted(["m.npz", *others, f".m.npz.{child + 2**22}.tmp"])


def test_44_a_temporary_that_is_being_written_is_left_alone(tmp_path, monkeypatch):
    """Its process may run on another machine, whose numbers say nothing here."""
    monkeypatch.setattr(os, "getpid", lambda: 2**22 + 7)
    with output(tmp_path / "x", prefix="x") as file:
        file.write(b"1")
        remove_leftovers(tmp_path / "x")
        assert temporary_name(tmp_path / "x").exists()
    assert (tmp_path / "x").read_bytes() == b"1"


def test_44_a_temporary_of_a_dead_process_of_the_same_number_is_replaced(tmp_path):
    temporary_name(tmp_path / "x").write_text("old")
    with output(tmp_path / "x", prefix="x") as file:
        file.write(b"new")
    assert os.listdir(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == b"new"

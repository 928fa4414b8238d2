"""Outputs of commands go where they were sent (devices, pipes, links), and replace nothing unasked."""

from __future__ import annotations

import os
import signal

import pytest

from inside.kit.models import make_model
from streamcut import save_model
from streamcut.io.places.outputs import AppearedError, output

pytestmark = pytest.mark.process


def test_an_output_that_appears_meanwhile_stays(tmp_path):
    def write() -> None:
        with output(tmp_path / "x", prefix="x", replace=False) as file:
            file.write(b"ours")
            (tmp_path / "x").write_text("theirs")

    with pytest.raises(AppearedError, match="appeared meanwhile"):
        write()
    assert (tmp_path / "x").read_text() == "theirs"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("point", ["model_tmp", "model_fsync", "model_rename"])
def test_what_a_killed_write_left_goes_with_the_next(tmp_path, point):
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

"""What a system does to a process: files that may not be written, a disk that fills up, stops, clocks, hash seeds, threads."""

from __future__ import annotations

import os

import click
import kit.shared.system_faults
import pytest
from kit.shared.system_faults import LIMITS, unprivileged

from streamcut import convert, train
from streamcut.cli import cli, main
from streamcut.errors import ExitCode
from streamcut.execution.row_state import RowState

folder = kit.shared.system_faults.folder
text = kit.shared.system_faults.text


cli.get_command(click.Context(cli), "train")  # whoever gives root's rights away may not see Python's own files any more

pytestmark = pytest.mark.process


@pytest.mark.parametrize("what", ["convert", "model", "checkpoint", "scratch"])
def test_a_folder_that_may_not_be_written_is_told_as_such(folder, text, what):
    convert(text, folder / "a.zarr", shard_nnz=1000)
    train(str(folder / "a.zarr"), **LIMITS)  # loads all that the child needs
    closed = folder / "closed"
    closed.mkdir()
    os.chmod(closed, 0o555)
    command = ["train", str(folder / "a.zarr"), "--output"]
    work = {
        "convert": lambda: main(["convert", str(text), str(closed / "b.zarr")]),
        "model": lambda: main([*command, str(closed / "m.npz")]),
        "checkpoint": lambda: main([*command, str(folder / "m.npz"), "--checkpoint", str(closed / "run")]),
        "scratch": lambda: RowState(10, closed).add("z"),
    }[what]
    assert unprivileged(work) == ExitCode.NOT_FOUND
    assert list(closed.iterdir()) == []

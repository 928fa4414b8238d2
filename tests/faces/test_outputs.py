"""Outputs of commands go where they were sent (devices, pipes, links), and replace nothing unasked."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import streamcut
from streamcut import load_model, save_model

pytestmark = pytest.mark.process

ROWS = "1 1:1 3:0.5\n-1 2:1\n1 1:2\n-1 2:2 3:-1\n"
USAGE, LOCKED = 2, 10


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """a.svm, a.zarr, and m.npz, which was trained on it."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "a.svm").write_text(ROWS)
    streamcut.convert(folder / "a.svm", folder / "a.zarr")
    save_model(streamcut.train(str(folder / "a.zarr")), folder / "m.npz")
    return folder


COMMANDS = {  # what writes to OUT, and how the content of a whole one begins
    "predict": ("predict m.npz a.svm -o OUT", b"1\n-1\n"),
    "train": ("train a.zarr --quiet -o OUT", b"PK\x03\x04"),
    "report": ("report m.npz --quiet -o OUT", b"<!doctype html>"),
    "export": ("export m.npz OUT", b"solver_type"),
    "calibrate": ("calibrate m.npz a.svm --quiet -o OUT", b"PK\x03\x04"),
    "train on several": ("train a.zarr --validation a.zarr --quiet --C 1 -o OUT", b"PK\x03\x04"),
}


@pytest.fixture
def folder(made, tmp_path, monkeypatch) -> Path:
    for name in ("a.svm", "a.zarr"):
        os.symlink(made / name, tmp_path / name)
    (tmp_path / "m.npz").write_bytes((made / "m.npz").read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments(command: str, out: str | Path) -> list[str]:
    return [str(out) if word == "OUT" else word for word in COMMANDS[command][0].split()]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_is_written_through(run, folder, command):
    os.mkfifo("pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(Path("pipe").read_bytes()))
    reader.start()
    code, out, err = run(*arguments(command, "pipe"))
    reader.join(60)
    assert (code, out) == (0, ""), err
    assert found[0].startswith(COMMANDS[command][1])
    assert stat.S_ISFIFO(os.lstat("pipe").st_mode)
    assert sorted(set(os.listdir()) - {"a.svm", "a.zarr", "m.npz", "n.npz"}) == ["pipe"]


@pytest.mark.parametrize("command", COMMANDS)
def test_links_are_followed_and_stay(run, folder, command):
    (folder / "elsewhere").mkdir()
    target = folder / "elsewhere" / "out"
    target.write_text("old")
    os.chmod(target, 0o640)
    (folder / "second").symlink_to(target)
    (folder / "first").symlink_to("second")
    code, _, err = run(*arguments(command, "first"))
    assert (code, "first exists" in err, target.read_text()) == (USAGE, True, "old")
    code, out, err = run(*arguments(command, "first"), "--force")
    assert (code, out) == (0, ""), err
    assert (os.readlink("first"), os.readlink("second")) == ("second", str(target))
    assert target.read_bytes().startswith(COMMANDS[command][1])
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir("elsewhere") == ["out"]


def test_a_link_to_nothing_gets_its_target_and_one_in_a_circle_none(run, folder):
    os.symlink("new", "link")
    assert run("export", "m.npz", "link")[0] == 0
    assert os.readlink("link") == "new"
    os.symlink("b", "a")
    os.symlink("a", "b")
    code, _, err = run("export", "m.npz", "b")
    assert (code, "Too many levels" in err) == (4, True)
    os.symlink("none/x", "c")
    assert run("export", "m.npz", "c")[0] == 4


SHELL = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]


def test_standard_output_by_name(folder):
    """Without --force, into a pipe and into a file that has something in it already."""
    command = [*SHELL, "predict", "m.npz", "a.svm", "-o"]
    found = subprocess.run([*command, "/proc/self/fd/1"], check=True, capture_output=True, text=True)
    assert found.stdout == "1\n-1\n1\n-1\n"
    command.append("/dev/stdout")
    with open("labels.txt", "w") as file:
        file.write("head\n")
        file.flush()
        inode = os.fstat(file.fileno()).st_ino
        subprocess.run(command, check=True, stdout=file)
    assert Path("labels.txt").read_text() == "head\n1\n-1\n1\n-1\n"
    assert Path("labels.txt").stat().st_ino == inode


@pytest.mark.parametrize(
    "line",
    [
        "train a.zarr --validation a.zarr --C 1,2 -o x.svg --plot x.svg --force",
        "train a.zarr --folds 2 -o m.npz --plot link --force",
        "predict m.npz a.svm -o a.svm --force",
        "predict m.npz a.svm -o m.npz --force",
        "report m.npz -o m.npz --force",
        "export m.npz m.npz --force",
        "calibrate m.npz a.svm -o a.svm --force",
    ],
)
def test_one_file_is_not_read_and_written_nor_written_twice(run, folder, line):
    (folder / "link").symlink_to("m.npz")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    code, _, err = run(*line.split())
    assert (code, "of this command" in err) == (USAGE, True), err
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def stopped_train(model: str, *options: str) -> subprocess.Popen:
    """One that reads its rows, and stands still until SIGCONT."""
    environment = {**os.environ, "STREAMCUT_FAILPOINT": "train.shard:1:stop"}
    process = subprocess.Popen([*SHELL, "train", "a.zarr", "--output", model, *options], env=environment, stderr=subprocess.PIPE)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    return process


def test_a_second_train_to_one_model_fails_and_changes_nothing(run, folder):
    first = stopped_train("x.npz")
    for options in ([], ["--force"]):
        code, _, err = run("train", "a.zarr", "--output", "x.npz", "--C", "100", *options)
        assert (code, "being written by another process" in err) == (LOCKED, True), err
    first.send_signal(signal.SIGCONT)
    assert first.wait(60) == 0
    assert load_model("x.npz").C == 1.0
    code, _, err = run("train", "a.zarr", "--output", "x.npz", "--C", "100")
    assert (code, "x.npz exists" in err) == (USAGE, True)
    assert not [name for name in os.listdir() if name.startswith(".x.npz")]


def test_a_model_that_appears_meanwhile_stays_and_ours_is_kept(folder):
    first = stopped_train("x.npz", "--C", "7")
    Path("x.npz").write_text("mine")
    first.send_signal(signal.SIGCONT)
    assert first.wait(60) == USAGE
    assert b"the model is in x.1.npz" in first.stderr.read()
    assert Path("x.npz").read_text() == "mine"
    assert load_model("x.1.npz").C == 7.0


@pytest.mark.parametrize("point", ["model_tmp", "model_fsync", "model_rename"])
def test_a_killed_write_leaves_the_old_model_and_what_it_left_goes_with_the_next(folder, point):
    before, model = Path("m.npz").read_bytes(), load_model("m.npz")
    child = os.fork()
    if child == 0:
        os.environ["STREAMCUT_FAILPOINT"] = f"{point}:1:kill"
        save_model(model, "m.npz")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert Path("m.npz").read_bytes() == before
    assert Path(f".m.npz.{child}.tmp").exists()
    Path(".m.npz.lock").touch()
    others = {".m.npz.notes.tmp", f".n.npz.{child}.tmp", f"m.npz.{child}.tmp", f".m.npz.{os.getppid()}.tmp"}
    for name in others:  # of other files, or of a process that lives
        Path(name).write_text("mine")
    Path(f".m.npz.{child + 2**22}.tmp").mkdir()
    save_model(model, "m.npz")
    assert {*os.listdir()} - {"a.svm", "a.zarr"} == {"m.npz", *others, f".m.npz.{child + 2**22}.tmp"}

"""What tests/hostile/test_hostile_store.py and tests/inside/hostile/test_hostile_store.py share."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

import streamcut

CORRUPT = 5
ROWS = "1:0.5 qid:1 1:1 3:0.5\n-1 qid:1 2:1\n1 qid:2 1:2\n-1:2 qid:2 2:2 3:-1\n"
PLAIN = "1 qid:1 1:1 3:0.5\n-1 qid:1 2:1\n1 qid:2 1:2\n-1 qid:2 2:2 3:-1\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """z.zarr and h.store of two shards, m.npz, and secret.txt."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "a.svm").write_text(ROWS)
    options = {"label_weights": True, "shard_nnz": 4}
    streamcut.convert(folder / "a.svm", folder / "z.zarr", **options)
    streamcut.convert(folder / "a.svm", folder / "h.store", backend="hdf5", **options)
    (folder / "b.svm").write_text(PLAIN)
    streamcut.convert(folder / "b.svm", folder / "plain.zarr", shard_nnz=4)
    streamcut.save_model(streamcut.train(str(folder / "z.zarr"), task="binary", solver="ocas", max_passes=3), folder / "m.npz")
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "in"))
    return tmp_path / "in"


@pytest.fixture(autouse=True)
def alarm():
    """Whatever hangs is ended with a traceback."""

    def ring(*_) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


COMMANDS = [
    "info {}",
    "info {} --check --read-data",
    "train {} -o x.npz --task binary --solver ocas --max-passes 2 --force",
    "predict m.npz {}",
]


def refused(run, store: str, *, but: tuple[str, ...] = (), code: int = CORRUPT) -> None:
    """By every command, with a sentence."""
    for command in COMMANDS:
        found, _, err = run(*command.format(store).split())
        assert "Traceback" not in err, command
        assert found == code or (found == 0 and command.split()[0] in but), (command, found, err)

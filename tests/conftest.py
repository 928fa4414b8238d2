"""Fixtures that several test files use: the command line in this process; real data sets, each loaded once a session."""

from __future__ import annotations

import lzma
import os
import signal
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from streamcut.cli import main

ROOT = Path(__file__).resolve().parent.parent
_RUNS = count()

# Some tests have Dask's workers in this process; see streamcut.execution.cluster_connection.connect.
os.environ["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "False"

# Property tests try the same examples in every run: what passes here passes elsewhere, and no run fails by a new draw alone.
# `pytest --hypothesis-profile=explore` draws new ones.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile("suite")


def _data_folder() -> Path:
    return Path(os.environ.get("STREAMCUT_DATA") or ROOT / ".." / "shared" / "data").resolve()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs no mark of its own: tests of clusters by their folder, those on real data by their fixtures."""
    for item in items:
        if item.path.parent.name == "dask":
            item.add_marker(pytest.mark.cluster)
        if {"data_dir", "load"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.data)


@pytest.fixture(autouse=True)
def failpoints_count_from_one() -> None:
    """Whatever tests before have visited."""
    os.environ["STREAMCUT_FAILPOINT_RUN"] = str(next(_RUNS))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets (STREAMCUT_DATA); tests that need one skip where it is absent."""
    folder = _data_folder()
    if not folder.is_dir():
        pytest.skip(f"no data sets at {folder}; set STREAMCUT_DATA")
    return folder


@pytest.fixture
def run(capfd):
    """`run(*arguments)` → (exit code, stdout, stderr), in this process."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def run(*arguments) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        return (int(end.value.code or 0), *capfd.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@cache
def _load(path: Path, n_features: int | None):
    from sklearn.datasets import load_svmlight_file  # takes seconds to import, and few tests need it

    with lzma.open(path) as file:
        return load_svmlight_file(file, n_features=n_features, zero_based=False)


@pytest.fixture(scope="session")
def load(data_dir: Path):
    """`load(name, split="train")` → X (csr, float64), y (float64), read once a session: don't write into them.

    A test split has the columns of its train split; features that only the test split has are an error of scikit-learn's.
    """

    def load(name: str, split: str = "train"):
        folder = data_dir / name
        if not (folder / f"{split}.svm.xz").is_file():
            pytest.skip(f"no {name}/{split}.svm.xz in {data_dir}")
        columns = None if split == "train" else _load(folder / "train.svm.xz", None)[0].shape[1]
        return _load(folder / f"{split}.svm.xz", columns)

    return load

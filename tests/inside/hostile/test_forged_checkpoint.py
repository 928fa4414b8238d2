"""Checkpoints that somebody forged, with sums to match: refused by name or harmless; no crash, no false certificate."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from kit.nights import by_night
from sklearn.datasets import dump_svmlight_file

from inside.kit.forged_checkpoint import RUNS, job, resumed, rows, stopped
from streamcut import train
from streamcut.errors import CorruptError
from streamcut.foundation.files import write_stream_durably
from streamcut.models.checkpoint import checkpoint_parts, open_checkpoint

_EVERY = 5  # of the ways to forge a run is tried with every fifth, another fifth in the next run
FLOATS = (np.nan, np.inf, -1e300, 1e300)


def forged_arrays(arrays: dict[str, np.ndarray]) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    for name, array in arrays.items():
        yield f"without {name}", {other: arrays[other] for other in arrays if other != name}
        yield f"{name} of other numbers", {**arrays, name: array.astype(np.float32 if array.dtype != np.float32 else np.int64)}
        yield f"{name} too long", {**arrays, name: np.concatenate([array, array[-1:]]) if array.ndim else array[None]}
        whole = array.dtype.kind != "f" and np.iinfo(array.dtype)
        for value in (whole.max, whole.min) if whole else FLOATS:
            for every in (False, True):
                wrong = array.copy()
                with np.errstate(over="ignore"):
                    wrong.reshape(-1)[slice(None) if every else slice(-1, None)] = value
                yield f"{name} with {value}, {'everywhere' if every else 'once'}", {**arrays, name: wrong}


def forged_numbers(state: Any, where: str = "state") -> Iterator[tuple[str, Any]]:
    """(what, copy of `state` with one number changed)."""
    for key in state if isinstance(state, dict) else range(min(len(state), 2)):
        value = state[key]
        if isinstance(value, dict | list):
            changed: Iterator[tuple[str, Any]] = forged_numbers(value, f"{where}, {key}")
            changes = [*changed, (f"{where}, {key}: a text", "x")]
        else:
            changes = [(f"{where}, {key}: {other!r}", other) for other in ("x", math.nan, 10**400, [])]
        for what, other in changes:
            wrong = copy.copy(state)
            wrong[key] = other
            yield what, wrong


@cache
def honest(name: str) -> float:
    """The objective of the run that nobody disturbed, with many more passes."""
    data, options = job(name)
    model = train(data, **{**options, **({"max_passes": 200} if "max_passes" in options else {})})
    return sum(each.primal for each in certificates(model))


def certificates(model: Any) -> list[Any]:
    found = model.certificates
    return [each for each in found if each is not None]


# Those that differ from another one in the loss alone, or not in what a checkpoint holds, are for nights.
NIGHTLY = {"cpa", "squared hinge", "poisson", "roc-area", "f1"}


@pytest.mark.thirds
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", by_night(RUNS, NIGHTLY))
def test_forged_checkpoints_are_refused_or_harmless(name, tmp_path):
    found = stopped(name, tmp_path)
    arrays, record = found.read_all(), found.record
    cases = [(what, record, forged) for what, forged in forged_arrays(arrays)]
    cases += [(what, {**record, "state": state}, arrays) for what, state in forged_numbers(record["state"])]
    cases = cases[list(RUNS).index(name) % _EVERY :: _EVERY]
    assert len(cases) > 10
    resumed(name, tmp_path, record, arrays)  # as it was it goes on
    refused = 0
    for what, forged_record, forged in cases:
        try:
            model = resumed(name, tmp_path, forged_record, forged)
        except CorruptError:
            refused += 1
            continue
        for certificate in certificates(model):
            assert math.isfinite(certificate.primal), what
        assert sum(each.lower_bound for each in certificates(model)) <= honest(name), what
    assert refused > 0.5 * len(cases), f"{refused} of {len(cases)}"


@pytest.mark.parametrize("name", ["bundle-dca", "crammer-singer"])
def test_the_command_line_names_the_file(name, tmp_path, run):
    X, y, _ = rows("classes" if name == "crammer-singer" else "two")
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    assert run("convert", tmp_path / "rows.svm", tmp_path / "rows.zarr")[0] == 0
    words = ["train", tmp_path / "rows.zarr", "--model", tmp_path / "m.npz", "--checkpoint", tmp_path / "run", "--tol", "1e-9"]
    words += ["--solver", "bundle-dca", "--tol-relative", "0", *(["--task", "multiclass"] if name == "crammer-singer" else [])]
    assert run(*words, "--max-passes", "3")[0] == 0
    (path,) = list((tmp_path / "run").glob("*.checkpoint"))[:1]
    for other in (tmp_path / "run").glob("*.checkpoint"):
        if other != path:
            other.unlink()
    found = open_checkpoint(path)
    arrays = found.read_all()
    arrays["rows.z"].reshape(-1)[0] = np.nan
    write_stream_durably(path, *checkpoint_parts(found.record, arrays, lambda: None))
    code, _, shown = run(*words, "--resume", "--force", "--max-passes", "9")
    assert code == 5
    assert str(path) in shown
    assert "array rows.z holds nan" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    ("name", "where", "value"),
    [("smo", ("solver", "tolerance"), -1.0), ("smo", ("oracle", "counted"), 10**6), ("smo", ("oracle", "steps"), -5)],
)
def test_numbers_that_would_never_end_are_refused(name, where, value, tmp_path):
    found = stopped(name, tmp_path)
    state = copy.deepcopy(found.record["state"])
    state[where[0]][where[1]] = value
    with pytest.raises(CorruptError):
        resumed(name, tmp_path, {**found.record, "state": state}, found.read_all())


def test_steps_before_the_first_are_refused(tmp_path):
    found = stopped("bsca", tmp_path)
    arrays = found.read_all()
    arrays["0.counts"][:] = np.where(arrays["0.counts"] > 0, -1, arrays["0.counts"])
    with pytest.raises(CorruptError):
        resumed("bsca", tmp_path, found.record, arrays)

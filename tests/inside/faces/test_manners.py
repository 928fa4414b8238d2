"""What a Python user sees of streamcut beside its numbers: short representations, suggestions, types."""

from __future__ import annotations

from importlib import import_module

import kit.shared.manners
import pytest

import streamcut
from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.foundation.shown import meant
from streamcut.kernels.kernel import Kernel
from streamcut.models.model import Model

rows = kit.shared.manners.rows


pytestmark = pytest.mark.smoke


# --- representations ----------------------------------------------------------------------------------------------------------


def kinds(base: type) -> set[type]:
    return {base, *(kind for child in base.__subclasses__() for kind in kinds(child))}


@pytest.mark.parametrize("module", ["kernel", "linear", "mapped", "multiclass", "sequence"])
def test_no_model_shows_its_arrays(module):
    import_module(f"streamcut.models.{module}")
    assert {kind.__repr__ for kind in kinds(Model)} == {Model.__repr__}


# --- suggestions --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda rows: streamcut.train(rows, tolerance_relative=1e-3),
            "no option tolerance_relative; did you mean tol_rel",
        ),
        (lambda rows: streamcut.train(rows, maxcuts=3), r"no option maxcuts; did you mean max_cuts\?"),
        (lambda rows: streamcut.train(rows, quux=3), r"train has no option quux; help\(streamcut.train\) lists them"),
        (
            lambda rows: streamcut.train(rows, loss="squared_hinge"),
            r"loss: 'squared_hinge' is unknown; did you mean squared-hinge",
        ),
        (lambda rows: streamcut.train(rows, task="Multiclass"), r"task: .*; did you mean multiclass\? use one of auto, binary"),
        (lambda rows: streamcut.train(rows, solver="xyz"), "solver: 'xyz' is unknown; use one of auto, "),
        (lambda rows: streamcut.train(rows, scheduler="local_cluster"), r"scheduler: .*; did you mean local-cluster\?"),
        (
            lambda rows: streamcut.convert("x.svm", "x.zarr", shard_nzz=3),
            r"convert has no option shard_nzz; did you mean shard_nnz\?",
        ),
        (lambda rows: streamcut.convert("x.svm", "x.zarr", backend="zar"), r"backend: 'zar' is unknown; did you mean zarr\?"),
        (lambda rows: Kernel("rfb"), r"kernel: 'rfb' is unknown; did you mean rbf\?"),
    ],
)
def test_what_was_meant_is_suggested(rows, call, message):
    with pytest.raises(UsageError, match=message):
        call(rows)


def test_only_what_is_close_is_suggested():
    assert meant("memry", ["memory", "model"]) == "did you mean memory?"
    assert meant("zzz", ["memory", "model"]) == ""


def test_no_row_cache_has_two_names():
    assert TrainOptions(row_cache="none") == TrainOptions(row_cache="0")

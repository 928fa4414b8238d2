"""What a Python user sees of streamcut besides its numbers: short representations, suggestions, types."""

from __future__ import annotations

import importlib
import logging
import runpy
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import StreamcutError, UsageError, given, spelled

pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def rows() -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 20), density=0.4, rng=rng, format="csr", data_sampler=rng.normal)
    return sp.csr_matrix(X), np.where(X @ rng.normal(size=20) > 0, 1.0, -1.0)


@pytest.mark.parametrize(
    "options", [{}, {"task": "multiclass"}, {"task": "multiclass", "strategy": "one-vs-rest"}, {"kernel": "rbf", "nystroem": 5}]
)
def test_a_model_and_its_certificate_fit_in_a_line(rows, options):
    X, y = rows
    plans: list = []
    y = np.arange(len(y)) % 3.0 if "task" in options else y
    model = streamcut.train((X, y), on_plan=plans.append, max_passes=5, **options)
    assert len(repr(model)) < 250
    assert f"solver={model.solver}, features={X.shape[1]}, " in repr(model)
    assert f"converged={model.converged}" in repr(model)
    html = model._repr_html_()
    assert html.startswith(f"<table><caption>{type(model).__name__}</caption>")
    assert f"<td style='text-align:right'>{model.solver}</td>" in html
    (plan,) = plans
    assert repr(plan).startswith("MemoryPlan(total=")
    assert f"<th style='text-align:left'>{plan.lines[0][0]}</th>" in plan._repr_html_()
    if hasattr(model, "certificate"):
        text = repr(model.certificate)
        assert text.startswith(f"Certificate(primal={model.certificate.primal:.6g}, ")
        assert len(text) < 160


def test_a_store_says_what_it_is(rows, tmp_path):
    with streamcut.create(tmp_path / "rows.zarr") as new:
        new.append(*rows)
    for data, name, place in (
        (streamcut.open(tmp_path / "rows.zarr"), "Store", f"path={tmp_path / 'rows.zarr'}, "),
        (streamcut.rows(*rows), "MemoryDataset", ""),
    ):
        assert repr(data).startswith(f"{name}({place}rows=300, features=20, nnz={rows[0].nnz:,}, labels=2, shards=1, decoded=")
        assert "<th style='text-align:left'>nnz</th>" in data._repr_html_()
        data.path = "<b>"
        assert "&lt;b&gt;" in data._repr_html_()


# --- suggestions ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance_relative": 1e-3}, "no option tolerance_relative; did you mean tol_rel"),
        ({"maxcuts": 3}, r"no option maxcuts; did you mean max_cuts\?"),
        ({"quux": 3}, r"train has no option quux; help\(streamcut.train\) lists them"),
        ({"loss": "squared_hinge"}, r"loss: 'squared_hinge' is unknown; did you mean squared-hinge"),
        ({"task": "Multiclass"}, r"task: .*; did you mean multiclass\? use one of auto, binary"),
        ({"solver": "xyz"}, "solver: 'xyz' is unknown; use one of auto, "),
        ({"scheduler": "local_cluster"}, r"scheduler: .*; did you mean local-cluster\?"),
        ({"kernel": "rfb"}, r"kernel: 'rfb' is unknown; did you mean rbf\?"),
        ({"shard_nzz": 3}, r"convert has no option shard_nzz; did you mean shard_nnz\?"),
        ({"backend": "zar"}, r"backend: 'zar' is unknown; did you mean zarr\?"),
    ],
)
def test_what_was_meant_is_suggested(rows, options, message):
    of_convert = options.keys() & {"shard_nzz", "backend"}
    with pytest.raises(UsageError, match=message):
        streamcut.convert("x.svm", "x.zarr", **options) if of_convert else streamcut.train(rows, **options)


# --- types --------------------------------------------------------------------------------------------------------------------


def test_streamcut_runs_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["streamcut", "--version"])
    monkeypatch.delitem(sys.modules, "streamcut.__main__", raising=False)  # or runpy warns
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("streamcut", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"streamcut, version {streamcut.__version__}\n"
    importlib.reload(importlib.import_module("streamcut.__main__"))  # whose import runs nothing


# --- logging --------------------------------------------------------------------------------------------------------------------


def test_the_course_of_a_training_is_logged(rows, caplog):
    with caplog.at_level("INFO", logger="streamcut"):
        seen: list = []
        model = streamcut.train(rows, on_iteration=seen.append)
    shown = [record.getMessage() for record in caplog.records if record.name == "streamcut.run"]
    assert shown[0] == "training by bundle-dca on 300 rows with 20 features"
    assert shown[1].startswith("memory planned: ")
    assert shown[-1] == model.in_words()
    assert len(shown) == 3 + len(seen)
    assert all(text.startswith("passes ") for text in shown[2:-1])


def test_nothing_is_logged_unless_asked(rows, caplog, capfd):
    streamcut.train(rows)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert capfd.readouterr() == ("", "")


def test_a_conversion_is_logged(tmp_path, caplog):
    (tmp_path / "rows.svm").write_text("+1 1:0.5 3:2\n-1 2:1\n", encoding="utf-8")
    with caplog.at_level("INFO", logger="streamcut"):
        streamcut.convert(tmp_path / "rows.svm", tmp_path / "rows.zarr")
    assert f"{tmp_path / 'rows.zarr'}: 2 rows, 3 features, 3 entries" in caplog.messages


def test_messages_name_options_as_they_are_given(monkeypatch):
    said = f"({given('drop', 'a row')} or {given('drop', '3')}, {given('hash-bits', 22)}, --dtype=float64, --force, `tune --C 1`)"
    assert spelled(said) == "(drop='a row' or drop='3', hash_bits=22, dtype='float64', force=True, `tune --C 1`)"
    assert spelled("--no-standardise, --force: no") == "standardise=False, force: no"
    monkeypatch.setattr(StreamcutError, "on_command_line", True)
    assert spelled(said) == "(--drop 'a row' or --drop 3, --hash-bits 22, --dtype float64, --force, `tune --C 1`)"

"""Reports: the page says what the model's JSON says, asks for nothing from outside, and its command trains the same model."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import kit.shared.reports
import numpy as np
import pytest
from kit.reports import arrays, trained
from kit.shared.reports import _Page

import streamcut
from streamcut import evaluate, load_model, save_model, train
from streamcut.errors import BadInputError
from streamcut.foundation.units import format_bytes
from streamcut.models.files import plain
from streamcut.reports import facts
from streamcut.reports.page import Report

stores = kit.shared.reports.stores


KINDS = (
    "linear",
    "logistic",
    "regression",
    "bundle-dca",
    "multiclass",
    "rest",
    "ranking",
    "sequence",
    "bsca",
    "smo",
    "sbp",
    "sampled",
    "nystroem",
)


@pytest.mark.thirds
@pytest.mark.parametrize("kind", KINDS)
def test_the_page_is_whole_and_says_what_the_json_says(kind):
    model, data = trained(kind)
    page = _Page(Report(model, data=data).html())
    assert page.open == []
    assert page.outside == []
    assert len(page.ids) == len(set(page.ids)), "two things of one name"
    assert page.within <= set(page.ids)
    numbers = json.loads(page.numbers)
    assert numbers["result"] == plain(model.result())
    assert numbers["measures"] == plain(evaluate(model, data).measures())
    assert numbers["resources"] == plain(model.resources)
    floats = [v for v in {**numbers["result"], **numbers["measures"]}.values() if isinstance(v, float)]
    assert floats
    assert {repr(v) for v in floats} <= page.titles
    assert not [cell for cell in page.cells if re.search(r"\d\.\d{8}", cell)], "four digits are shown"


def test_nothing_is_fetched_and_every_plot_is_well_formed():
    model, data = trained("linear")
    html = Report(model, data=data).html()
    assert not re.findall(r"@import|url\((?!#)|<link|<img|<iframe", html)
    addresses = set(re.findall(r"https?://[^\"'< ]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, "names of formats, not addresses"
    svgs = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(svgs) == 8
    for svg in svgs:
        ElementTree.fromstring(svg)
        assert "currentColor" in svg
        used = set(re.findall(r'xlink:href="#([^"]+)"|url\(#([^)]+)\)', svg))
        assert {a or b for a, b in used} <= set(re.findall(r' id="([^"]+)"', svg))


def test_names_are_escaped(tmp_path):
    model, _ = trained("linear")
    names = [f"<b&>{j}" for j in range(15)]
    (tmp_path / "names.txt").write_text("\n".join(names) + "\n")
    report = Report(model, vocabulary=tmp_path / "names.txt")
    assert "<b&>" not in report.html()
    assert "&lt;b&amp;&gt;" in report.html()
    assert _Page(report.html()).open == []
    (tmp_path / "names.txt").write_text("one\ntwo\n")
    with pytest.raises(BadInputError, match="2 names, but the model has 15"):
        Report(model, vocabulary=tmp_path / "names.txt")


def test_the_greatest_weights():
    model, _ = trained("linear")
    sides = facts.top_features(model, None, 4)
    w = model.weights
    for side, sign in (("1", 1.0), ("0", -1.0)):
        order = [j for j in np.argsort(-sign * w)[:4] if sign * w[j] > 0]
        assert sides[side] == [(f"{j + 1}", w[j]) for j in order]
    several, _ = trained("multiclass")
    name, weight = facts.top_features(several, [f"f{j}" for j in range(15)])["2"][0]
    assert weight == several.weights[:, 2].max()
    assert name == f"f{np.argmax(several.weights[:, 2])}"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"solver": "bundle-dca", "C": 0.3, "workers": 1, "row_cache": "30%"},
        {"cut": "exact", "tol": 0.0, "tol_relative": 1e-5, "bias": 0.0, "solver": "ocas"},
        {"positive_label": 0.0, "positive_weight": 2.5, "max_time": 100.0},
        {"solver": "bsca", "kernel": "rbf", "gamma": 0.125, "budget": 20, "epochs": 2.0, "seed": 3},
        {"solver": "bsca", "kernel": "linear", "budget": 20, "maintenance": "remove"},
    ],
    ids=str,
)
def test_the_command_trains_the_same_model(options, stores, tmp_path, run):
    model = train(stores[0], **options)
    words = shlex.split(facts.command(model, tmp_path / "again.npz"))
    assert words[:2] == ["streamcut", "train"]
    assert run(*words[1:], "--quiet")[0] == 0
    again = load_model(tmp_path / "again.npz")
    X, _ = arrays(seed=1)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_traffic_is_that_of_the_history():
    model, _ = trained("linear")
    last, found = model.history[-1], facts.traffic(model)
    assert found["bytes_computed_per_pass"] * found["passes"] == pytest.approx(last["bytes_computed"])
    assert found["GB_per_second_read"] * 1e9 * last["seconds"] == pytest.approx(last["bytes_read"])


def test_confusions_by_name():
    few, data = trained("multiclass")
    assert "true \\ predicted" in Report(few, data=data).html()
    X, y = arrays(20, n=2000)
    many = train(streamcut.rows(X, y), task="multiclass", max_passes=3)
    report = Report(many, data=streamcut.rows(X, y))
    assert "true \\ predicted" not in report.html(), "no room for 20 classes"
    assert "confusion" in report.figures()
    matrix = np.array(report.quality.measures["confusion_matrix"])
    np.fill_diagonal(matrix, 0)
    t, p = np.unravel_index(matrix.argmax(), matrix.shape)
    assert f"<tr><td>{many.labels[t]:g}</td>" in report.html().split("Most often mistaken")[1].split("</tr>")[1] + "</tr>"
    assert f">{int(matrix[t, p])}<" in report.html().split("Most often mistaken")[1]


def test_a_model_without_history():
    model, _ = trained("linear")
    html = Report(replace(model, history=[], resources={})).html()
    assert "<figure>" not in html
    assert "Memory</h3>" not in html


def test_the_plan_adds_up_and_stands_next_to_the_peak(stores, tmp_path, run):
    model = train(stores[0], solver="ocas")
    plan = model.resources["plan"]
    assert sum(size for _, size in plan) == model.resources["planned"]
    html = Report(model).html()
    for what, size in plan:
        assert size == 0 or f"<td>{escape(what)}</td><td>{format_bytes(size)}</td>" in html
    assert f"<td>measured peak</td><td>{format_bytes(model.resources['peak'])}</td>" in html
    save_model(model, tmp_path / "m.npz")
    code, out, _ = run("info", tmp_path / "m.npz", "--json")
    assert code == 0
    assert json.loads(out)["resources"] == plain(model.resources)
    _, out, _ = run("info", tmp_path / "m.npz")
    assert all(what in out for what, _ in plan)


def test_a_model_knows_where_its_data_were(stores, tmp_path, run, monkeypatch):
    data = Path(stores[0])
    monkeypatch.chdir(data.parent)
    assert run("train", data.name, "--output", tmp_path / "m.npz", "--quiet")[0] == 0
    assert run("report", tmp_path / "m.npz", "-o", tmp_path / "m.html", "--quiet")[0] == 0
    assert f"streamcut train {data.name} --output" in (tmp_path / "m.html").read_text(), "as it was given"
    assert load_model(tmp_path / "m.npz").parameters["data"] == data.name
    code, out, _ = run("verify", tmp_path / "m.npz", "--json")
    assert code == 0
    assert json.loads(out)["same_data"]
    monkeypatch.chdir(tmp_path)
    code, _, err = run("verify", tmp_path / "m.npz")
    assert code == 4
    assert f"{data.name}: no such file" in err
    save_model(train(streamcut.rows(*arrays())), tmp_path / "arrays.npz")
    code, _, err = run("verify", tmp_path / "arrays.npz")
    assert code == 2
    assert "arrays in memory" in err
    assert facts.command(load_model(tmp_path / "arrays.npz")).startswith("streamcut train DATA")

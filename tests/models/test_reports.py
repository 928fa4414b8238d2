"""Reports: the page says what the model's JSON says and asks for nothing from outside; its plots are those of the measures."""

from __future__ import annotations

import json
import re
import shlex
from base64 import b64decode
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import auc

import streamcut
from streamcut import evaluate, report, train


def arrays(classes: int = 2, seed: int = 0, n: int = 500):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 15), density=0.4, rng=rng, format="csr", data_sampler=rng.standard_normal)
    scores = X @ np.random.default_rng(9).standard_normal((15, classes)) + 0.5 * rng.standard_normal((n, classes))
    return X, np.argmax(scores, axis=1).astype(float)


def trained(kind: str):
    """(a model, data to measure it on)"""
    X, y = arrays(3 if kind in ("multiclass", "rest", "sequence") else 2)
    qid = np.repeat(np.arange(50), 10) if kind in ("ranking", "sequence") else None
    options = {
        "linear": {},
        "logistic": {"loss": "logistic"},
        "regression": {"task": "regression"},
        "multiclass": {"task": "multiclass"},
        "rest": {"task": "multiclass", "strategy": "one-vs-rest"},
        "ranking": {"task": "ranking"},
        "sequence": {"task": "sequence", "max_passes": 60},
        "bsca": {"kernel": "rbf", "budget": 20, "epochs": 3.0, "gamma": 0.1},
        "smo": {"kernel": "rbf", "solver": "smo", "gamma": 0.1},
        "sbp": {"kernel": "rbf", "solver": "sbp", "gamma": 0.1},
        "nystroem": {"kernel": "rbf", "nystroem": 20, "gamma": 0.1},
    }[kind]
    data = streamcut.rows(X, y, qid=qid)
    return train(data, **options), data


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, seed in (("train", 0), ("test", 1)):
        X, y = arrays(seed=seed)
        dump_svmlight_file(sp.csr_matrix(X), y, str(folder / f"{name}.svm"), zero_based=False)
        streamcut.convert(str(folder / f"{name}.svm"), str(folder / f"{name}.zarr"), n_features=15)
    return str(folder / "train.zarr"), str(folder / "test.zarr")


class _Page(HTMLParser):
    """Tags that are open, what links out, ids, and the JSON."""

    VOID = ("meta", "link", "img", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.outside: list[str] = []
        self.numbers = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "action") and not value.startswith(("#", "data:")):
                self.outside.append(value)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.numbers += data


@pytest.mark.parametrize(
    ("kind", "plots"),
    [
        ("linear", {"roc", "precision_recall", "certificate", "weights"}),
        ("logistic", {"roc", "precision_recall", "calibration", "certificate", "weights"}),
        ("regression", {"residuals", "certificate", "weights"}),
        ("multiclass", {"certificate", "weights"}),
        ("rest", {"certificate", "weights"}),
        ("ranking", {"certificate", "weights"}),
        ("sequence", {"certificate", "weights"}),
        ("bsca", {"roc", "precision_recall"}),
        ("smo", {"roc", "precision_recall", "certificate"}),
        ("sbp", {"roc", "precision_recall"}),
        ("nystroem", {"roc", "precision_recall", "certificate"}),
    ],
)
def test_the_page_is_whole_and_says_what_the_json_says(kind, plots):
    model, data = trained(kind)
    found = report(model, data=data)
    assert set(found.figures()) == plots
    html = found.html()
    page = _Page(html)
    assert page.open == []
    assert page.outside == []
    assert not re.search("<td>(raised|equal|unit|c bar)<", html), "fields for arithmetic"
    assert len(page.ids) == len(set(page.ids)), "two things of one name"
    assert not re.findall(r"@import|url\(|<link|<iframe|https?://", html), "nothing from outside"
    numbers = json.loads(page.numbers)
    assert numbers["measures"] == json.loads(json.dumps(evaluate(model, data).measures()))
    images = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert len(images) == len(plots)
    for image in images:
        ElementTree.fromstring(b64decode(image))


def test_plots_are_those_of_the_history_and_the_measures():
    X, y = arrays(n=3000)
    data = streamcut.rows(X, y, weight=np.random.default_rng(0).uniform(0.1, 3, 3000))
    model = train(data, solver="ocas")
    found, measures = report(model, data=data), evaluate(model, data)
    objective, bound = found.figures()["certificate"].axes[0].lines
    first, last = model.history[0], model.history[-1]
    assert objective.get_ydata()[0] == pytest.approx((first["primal"] - last["lower_bound"]) / last["primal"])
    assert bound.get_ydata()[-1] == pytest.approx(last["gap"] / last["primal"])
    assert auc(*found.figures()["roc"].axes[0].lines[-1].get_data()) == pytest.approx(measures.roc_auc, abs=1e-3)
    recall, precision = found.figures()["precision_recall"].axes[0].lines[-1].get_data()
    assert np.sum(np.diff(recall, prepend=0.0) * precision) == pytest.approx(measures.average_precision, abs=1e-2)
    bars = [bar.get_width() for bar in found.figures()["weights"].axes[0].patches]
    assert bars == sorted(model.weights, key=abs, reverse=True)
    names = [label.get_text() for label in found.figures()["weights"].axes[0].get_yticklabels()]
    assert names == [f"feature {each.feature}" for each in streamcut.weights(model) if each.feature is not None]
    assert report(model, data=streamcut.rows(X[y == 1], y[y == 1])).figures().keys() == {"certificate", "weights"}, "no curves"


def test_the_command_names_held_out_rows_that_have_one_path(stores, tmp_path, run):
    """Others are recorded, and left out."""
    data, validation = stores
    held_out = [validation, validation.replace(".zarr", ".svm"), [data, validation], streamcut.rows(*arrays(seed=1))]
    for rows, recorded in zip(held_out, [*held_out[:3], "rows in memory"], strict=True):
        model = train(data, kernel="rbf", gamma=0.1, budget=10, epochs=1.0, validation=rows)
        assert model.parameters["validation"] == recorded
        words = shlex.split(report(model).command)
        assert words[words.index("--validation") + 1 :][:1] == [rows] if isinstance(rows, str) else "--validation" not in words
        assert run(*words[1:], "--output", tmp_path / "m.npz", "--force")[0] == 0
        assert streamcut.load_model(tmp_path / "m.npz").history[-1].get("validation") == (
            model.history[-1]["validation"] if isinstance(rows, str) else None
        )


def test_the_commands(stores, tmp_path, run):
    data, validation = stores
    model, page = tmp_path / "m.npz", tmp_path / "m.html"
    assert run("train", data, "--output", model, "--quiet")[0] == 0
    assert run("report", model, "-o", page, "--quiet")[0] == 0
    assert shlex.quote(data) in page.read_text(), "where the rows were"
    assert run("report", model, "-o", page)[0] == 2, "it exists"
    code, _, err = run("report", model, "-o", page, "--force", "--data", validation, "--plots", tmp_path / "plots")
    assert code == 0
    assert "plots written" in err
    files = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert {"roc.svg", "roc.png", "precision_recall.svg", "certificate.png", "weights.svg"} <= set(files)
    assert (tmp_path / "plots" / "roc.png").read_bytes().startswith(b"\x89PNG")
    assert run("report", model, "--plots", tmp_path / "plots")[0] == 2, "not empty"
    assert run("report", model)[0] == 2
    numbers = json.loads(_Page(page.read_text()).numbers)
    code, out, _ = run("evaluate", model, validation, "--json")
    assert numbers["measures"] == json.loads(out)

"""Reports: the page says what the model's JSON says and asks for nothing from outside; its plots are those of the measures."""

from __future__ import annotations

import json
import re
import shlex
from base64 import b64decode
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


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, seed in (("train", 0), ("test", 1)):
        X, y = arrays(seed=seed)
        dump_svmlight_file(sp.csr_matrix(X), y, str(folder / f"{name}.svm"), zero_based=False)
        streamcut.convert(str(folder / f"{name}.svm"), str(folder / f"{name}.zarr"), n_features=15)
    return str(folder / "train.zarr"), str(folder / "test.zarr")


def parsed(html: str) -> tuple[list[str], list[str], dict]:
    """(addresses, ids, the JSON) of a page all of whose tags are closed."""
    text, numbers, after = re.split(r"(?s)<script[^>]*>(.*?)</script>", html)
    left = []
    for end, tag, alone in re.findall(r"<(/?)(\w+)[^>]*?(/?)>", text + after):
        if end:
            assert left.pop() == tag
        elif not alone and tag not in ("meta", "link", "img", "br"):
            left.append(tag)
    assert left == []
    return re.findall(r'(?:src|href|action)="([^"]*)"', html), re.findall(r'\bid="([^"]*)"', html), json.loads(numbers)


RBF = {"kernel": "rbf", "gamma": 0.1}
LINEAR, CURVES = {"certificate", "weights"}, {"roc", "precision_recall"}
PLOTS = [  # options, the plots of a page
    ({}, LINEAR | CURVES),
    ({"loss": "logistic"}, LINEAR | CURVES | {"calibration"}),
    ({"task": "regression"}, LINEAR | {"residuals"}),
    ({"task": "multiclass"}, LINEAR),
    ({"task": "ranking"}, LINEAR),
    ({"task": "sequence", "max_passes": 60}, LINEAR),
    ({**RBF, "budget": 20, "epochs": 3.0}, CURVES),
    ({**RBF, "solver": "smo"}, CURVES | {"certificate"}),
    ({**RBF, "nystroem": 20}, CURVES | {"certificate"}),
]


@pytest.mark.parametrize(("options", "plots"), PLOTS)
def test_the_page_is_whole_and_says_what_the_json_says(options, plots):
    task = options.get("task")
    X, y = arrays(3 if task in ("multiclass", "sequence") else 2)
    data = streamcut.rows(X, y, qid=np.repeat(np.arange(50), 10) if task in ("ranking", "sequence") else None)
    model = train(data, **options)
    found = report(model, data=data)
    assert set(found.figures()) == plots
    html = found.html()
    links, ids, numbers = parsed(html)
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search("<td>(raised|equal|unit|c bar)<", html), "fields for arithmetic"
    assert len(ids) == len(set(ids)), "two things of one name"
    assert not re.findall(r"@import|url\(|<link|<iframe|https?://", html), "nothing from outside"
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
    numbers = parsed(page.read_text())[2]
    code, out, _ = run("evaluate", model, validation, "--json")
    assert numbers["measures"] == json.loads(out)

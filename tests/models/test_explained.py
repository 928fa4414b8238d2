"""Why a row has its score, and what a model weighs: parts that add up, and weights, by the names of features and classes."""

from __future__ import annotations

import csv
import io
import json
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streamcut
from streamcut.errors import UsageError
from streamcut.sklearn import LinearSVM


def frame(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({"size": rng.normal(50.0, 5.0, n), "site": rng.choice(["a", "b", "c"], n), "old": rng.random(n) < 0.3})
    rows["kind"] = np.where(rows["size"] + 9 * (rows.site == "a") > 53, "big", np.where(rows.old, "old", "small"))
    return rows


@pytest.fixture(scope="module", params=["two", "softmax", "numbers", "arrays"])
def case(request, tmp_path_factory):
    """(model, rows to explain, the store or rows that it was trained on)."""
    rows = frame(300, 0)
    place = tmp_path_factory.mktemp("explained") / "rows.zarr"
    if request.param == "arrays":
        X = np.random.default_rng(0).normal(size=(200, 6))
        data = streamcut.rows(X, np.sign(X[:, 0]), weight=np.arange(200.0))
        return streamcut.train(data), X[:40], (X, np.sign(X[:, 0]), np.arange(200.0))
    label = {"two": "old", "softmax": "kind", "numbers": "size"}[request.param]
    more = {"two": {"loss": "logistic"}, "softmax": {"task": "multiclass", "loss": "softmax"}, "numbers": {"task": "regression"}}
    streamcut.convert(rows, place, labels=label, standardise=True)
    return streamcut.train(place, **more[request.param]), frame(40, 1).drop(columns=label), place


def test_parts_are_weights_times_values_and_add_up_to_the_score(case):
    model, rows, store = case
    scores, W, b = model.decision_function(rows), model.weights.reshape(model.n_features, -1), np.atleast_1d(model.intercept)
    for against, top in product((None, store), (None, 2, 0)):
        found = streamcut.explain(model, rows, top=top, against=against)
        assert [each.row for each in found] == list(range(40))
        for each, score in zip(found, scores, strict=True):
            assert each.score == np.max(score)
            total = each.base + sum(part.contribution for part in each.parts) + each.others
            assert total == pytest.approx(each.score, rel=1e-12, abs=1e-12)
            assert top is None or len(each.parts) <= top
            sizes = [abs(part.contribution) for part in each.parts]
            assert sizes == sorted(sizes, reverse=True)
            assert all(part.name == model.feature_name(part.feature) for part in each.parts)
            if against is None:
                k = 0 if W.shape[1] == 1 else [model.label_word(label) for label in model.labels].index(each.label)
                assert each.base == b[k]
                for part in each.parts:
                    assert part.contribution == pytest.approx(W[part.feature, k] * part.value)
            elif isinstance(store, tuple):  # the mean is that of the rows as they weigh
                X, _, u = store
                assert each.base == pytest.approx(model.intercept + (u @ X / u.sum()) @ model.weights)


def test_of_several_classes_the_one_that_is_asked_for():
    model = streamcut.train(frame(300, 0), label="kind", loss="softmax", task="multiclass")
    rows = frame(10, 1)
    scores = model.decision_function(rows)
    words = [model.label_word(label) for label in model.labels]
    for word in words:
        found = model.explain(rows, label=word)
        np.testing.assert_array_equal([each.score for each in found], scores[:, words.index(word)])
        assert {each.label for each in found} == {word}
    with pytest.raises(UsageError, match="'tall' has no weights; there are weights of"):
        model.explain(rows, label="tall")


def test_the_command_says_the_same(case, run, tmp_path):
    model, rows, store = case
    if isinstance(store, tuple):
        pytest.skip("the rows are an array")
    streamcut.save_model(model, tmp_path / "m.npz")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = streamcut.explain(model, rows, top=3, against=store)
    code, out, err = run("explain", tmp_path / "m.npz", tmp_path / "rows.csv", "--top", 3, "--against", store)
    assert (code, err) == (0, "")
    for each in expected:
        mine = [line for line in lines(out) if int(line["row"]) == each.row]
        assert [line["name"] for line in mine] == ["(base)", *(part.name for part in each.parts), "(others)"]
        assert sum(float(line["contribution"]) for line in mine) == pytest.approx(each.score, abs=1e-12)
        assert [float(line["value"]) for line in mine[1:-1]] == [part.value for part in each.parts]
    path = tmp_path / "why.jsonl"
    assert run("explain", tmp_path / "m.npz", tmp_path / "rows.csv", "--top", 3, "--against", store, "--json", "-o", path)[0] == 0
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["score"] for record in records] == [each.score for each in expected]
    assert records[0]["contributions"][0] == expected[0].parts[0]._asdict()
    code, _, err = run("explain", tmp_path / "m.npz", tmp_path / "rows.csv", "-o", path)
    assert (code, "--force" in err) == (2, True)


# --- weights by name ----------------------------------------------------------------------------------------------------------

N = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of two columns and three kinds, and models of two and of three classes."""
    place = tmp_path_factory.mktemp("named")
    rng = np.random.default_rng(4)
    site, size = rng.choice(["north", "south", "a=b, c"], N), rng.random(N)
    kind = np.where(site == "north", "cod", np.where(size > 0.5, "eel", "bass"))
    table = pa.table({"kind": kind, "site": site, "size": size})
    for name, labels in {"three": "kind", "two": "kind=cod"}.items():
        streamcut.convert(table, place / f"{name}.zarr", labels=labels)
        streamcut.save_model(streamcut.train(place / f"{name}.zarr", C=1.0), place / f"{name}.npz")
    return place


def lines(out: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(out)))


def test_weights_by_name(folder, run):
    model = streamcut.load_model(folder / "two.npz")
    code, out, _ = run("explain", folder / "two.npz")
    found = lines(out)
    assert (code, {line["class"] for line in found}) == (0, {"kind==cod"})
    assert (found[0]["name"], float(found[0]["weight"])) == ("(intercept)", model.intercept)
    for line in found[1:]:
        assert model.recipe.names[int(line["feature"])] == line["name"]
        assert model.weights[int(line["feature"])] == float(line["weight"])
    assert len(found) == 1 + np.count_nonzero(model.weights)
    sizes = [abs(float(line["weight"])) for line in found[1:]]
    assert sizes == sorted(sizes, reverse=True)
    assert "site=a=b, c" in {line["name"] for line in found}


def test_weights_of_classes_by_their_words(folder, run):
    found = json.loads(run("explain", folder / "three.npz", "--top", 2, "--sort", "weight", "--json")[1])
    words = streamcut.load_model(folder / "three.npz").recipe.labels.names.values()
    assert list(dict.fromkeys(weight["class"] for weight in found)) == list(words)
    cod = lines(run("explain", folder / "three.npz", "--label", "cod", "--sort", "feature")[1])
    assert {line["class"] for line in cod} == {"cod"}
    numbers = [int(line["feature"]) for line in cod[1:]]
    assert numbers == sorted(numbers)
    assert max(cod[1:], key=lambda line: float(line["weight"]))["name"] == "site=north"
    assert run("explain", folder / "three.npz", "--label", "tuna")[0] == 2


def test_names_of_svmlight_features(tmp_path, run):
    (tmp_path / "rows.svm").write_text("+1 1:0.5 3:2\n-1 2:1\n+1 3:1.5\n-1 1:-1 2:0.5\n")
    names = tmp_path / "names.txt"
    names.write_text("length\nwidth\nhöhe\nunused\n")
    given = ["convert", tmp_path / "rows.svm", tmp_path / "rows.zarr", "--feature-names", names, "-q"]
    assert run(*given)[0] == 0
    assert run("train", tmp_path / "rows.zarr", "--output", tmp_path / "m.npz", "-q")[0] == 0
    assert "höhe" in {line["name"] for line in lines(run("explain", tmp_path / "m.npz")[1])}
    assert streamcut.load_model(tmp_path / "m.npz").n_features == 4
    assert list(LinearSVM().fit(tmp_path / "rows.zarr").feature_names_in_) == ["length", "width", "höhe", "unused"]
    names.write_text("length\n\nhöhe\n")
    code, _, said = run(*given, "--force")
    assert code == 2
    assert "names.txt:2: no name" in said
    names.write_text("length\n")
    assert run(*given, "--force")[0] == 3  # feature 3 is beyond the names
    assert run(*given, "--force", "--n-features", 2)[0] == 2

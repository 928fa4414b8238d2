"""Why a row has its score: parts that add up to it, by the names of features, next to a row of zeros or a mean."""

from __future__ import annotations

import csv
import io
import json
import warnings

import numpy as np
import pandas as pd
import pytest

import streamcut
from streamcut.errors import UsageError


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


def test_parts_add_up_to_the_score(case):
    model, rows, store = case
    scores = model.decision_function(rows)
    for against in (None, store):
        for top in (None, 2, 0):
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


def test_parts_are_weights_times_values(case):
    model, rows, store = case
    W, b = (
        model.weights.reshape(model.n_features, -1),
        np.atleast_1d(model.intercept),
    )
    mean = streamcut.explain(model, rows, top=None, against=store)[0]
    for each in streamcut.explain(model, rows, top=None):
        k = 0 if W.shape[1] == 1 else [model.label_word(label) for label in model.labels].index(each.label)
        assert each.base == b[k]
        assert {part.feature: part.contribution for part in each.parts} == {
            part.feature: pytest.approx(W[part.feature, k] * part.value) for part in each.parts
        }
    if isinstance(store, tuple):  # the mean is that of the rows as they weigh
        X, _, u = store
        assert mean.base == pytest.approx(model.intercept + (u @ X / u.sum()) @ model.weights)


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
    lines = list(csv.DictReader(io.StringIO(out)))
    for each in expected:
        mine = [line for line in lines if int(line["row"]) == each.row]
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

"""Names of features and classes, from the data to everything that is said of a model."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from kit.store_crash import content as store_bytes

import streamcut
from streamcut.errors import UsageError
from streamcut.sklearn import LinearSVM

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
    assert code == 0
    assert {line["class"] for line in found} == {"kind==cod"}
    assert (found[0]["name"], float(found[0]["weight"])) == ("(intercept)", model.intercept)
    for line in found[1:]:
        assert model.recipe.names[int(line["feature"])] == line["name"]
        assert model.weights[int(line["feature"])] == float(line["weight"])
    assert len(found) == 1 + np.count_nonzero(model.weights)
    sizes = [abs(float(line["weight"])) for line in found[1:]]
    assert sizes == sorted(sizes, reverse=True)
    assert "site=a=b, c" in {line["name"] for line in found}


def test_weights_of_classes_by_their_words(folder, run):
    code, out, _ = run("explain", folder / "three.npz", "--top", 2, "--sort", "weight", "--json")
    found = json.loads(out)
    assert code == 0
    assert list(dict.fromkeys(weight["class"] for weight in found)) == list(
        streamcut.load_model(folder / "three.npz").recipe.labels.names.values()
    )
    code, out, _ = run("explain", folder / "three.npz", "--label", "cod", "--sort", "feature")
    assert {line["class"] for line in lines(out)} == {"cod"}
    numbers = [int(line["feature"]) for line in lines(out)[1:]]
    assert numbers == sorted(numbers)
    largest = max(lines(out)[1:], key=lambda line: float(line["weight"]))
    assert largest["name"] == "site=north"
    assert run("explain", folder / "three.npz", "--label", "tuna")[0] == 2


def test_weights_refuse_what_has_none(tmp_path, folder):
    model = streamcut.train(folder / "two.zarr", kernel="rbf", solver="bsca", budget=10, C=1.0)
    with pytest.raises(UsageError, match="kernel model has no weights"):
        streamcut.weights(model)
    with pytest.raises(UsageError, match="sort"):
        streamcut.weights(folder / "two.npz", sort="size")


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
    before = store_bytes(tmp_path / "rows.zarr")
    assert run(*given, "--force")[0] == 0
    assert store_bytes(tmp_path / "rows.zarr") == before
    names.write_text("length\n\nhöhe\n")
    code, _, said = run(*given, "--force")
    assert code == 2
    assert "names.txt:2: no name" in said
    names.write_text("length\n")
    assert run(*given, "--force")[0] == 3  # feature 3 is beyond the names
    assert run(*given, "--force", "--n-features", 2)[0] == 2

"""A model knows how its features were made: raw input is prepared alike, other data are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import streamcut
from streamcut import load_model, save_model
from streamcut.errors import BadInputError, CorruptError

WORDS = ["red", "green", "blue", "sun", "moon", "rain", "tree", "stone", "bird", "fish"]


def text(n: int, seed: int, *, named: bool = True, base: int = 1) -> str:
    """Rows whose label depends on a few of the features."""
    rng, lines = np.random.default_rng(seed), []
    for _ in range(n):
        found = sorted(rng.choice(len(WORDS), 4, replace=False).tolist())
        label = "+1" if 0 in found or 3 in found else "-1"
        names = [WORDS[k] if named else str(k + base) for k in found]
        lines.append(" ".join([label, *(f"{name}:{0.5 + k % 3 / 7:.3f}" for name, k in zip(names, found, strict=True))]))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """named.svm and named.test.svm hashed into hashed.zarr and test.zarr; h.npz was trained on them."""
    place = tmp_path_factory.mktemp("recipe")
    (place / "named.svm").write_text(text(200, 1))
    (place / "named.test.svm").write_text(text(100, 2))
    for name, store in (("named.svm", "hashed.zarr"), ("named.test.svm", "test.zarr")):
        streamcut.convert(place / name, place / store, hash_bits=8)
    save_model(streamcut.train(str(place / "hashed.zarr")), place / "h.npz")
    return place


@pytest.mark.parametrize(
    ("options", "reason"),
    [({}, "numbered features here"), ({"hash_bits": 9}, r"hashed into 2\^8 there, .* hashed into 2\^9 here")],
)
def test_stores_of_another_recipe_are_refused(folder, tmp_path, options, reason):
    (tmp_path / "a.svm").write_text(text(20, 3, named=False))
    streamcut.convert(tmp_path / "a.svm", tmp_path / "a.zarr", **options)
    model = load_model(folder / "h.npz")
    for task in (streamcut.predict, streamcut.evaluate, lambda m, d: streamcut.verify(m, d, force=True), streamcut.calibrate):
        with pytest.raises(BadInputError, match=rf"a\.zarr: prepared by another recipe than the model's .*{reason}"):
            task(model, str(tmp_path / "a.zarr"))
    other = streamcut.train(str(tmp_path / "a.zarr"))
    with pytest.raises(BadInputError, match=r"test\.zarr: prepared by another recipe"):
        streamcut.predict(other, folder / "test.zarr")
    with pytest.raises(BadInputError, match="warm_start: a model in memory: prepared by another recipe than the data"):
        streamcut.train(str(tmp_path / "a.zarr"), warm_start=model)
    with pytest.raises(BadInputError, match=r"validation: .*hashed\.zarr: prepared by another recipe than the data"):
        streamcut.train(str(tmp_path / "a.zarr"), solver="sbp", nu=0.1, validation=str(folder / "hashed.zarr"))


def test_words_with_other_numbers_are_renumbered_or_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((200, 4))
    y, rows = np.where(X[:, 0] > 0, "spam", "ham"), {}
    for first in ("ham", "spam"):  # the word that comes first is number 0
        order = np.argsort(y != first, kind="stable")
        with streamcut.create(f"{first}.zarr") as out:
            out.append(X[order], y[order])
        rows[first] = streamcut.rows(X[order], y[order])
    model, kernel = streamcut.train("ham.zarr"), {"kernel": "rbf", "gamma": 0.3, "budget": 20, "epochs": 2.0}
    expected = streamcut.evaluate(model, "ham.zarr").accuracy
    for there in ("spam.zarr", rows["spam"]):
        assert streamcut.evaluate(model, there).accuracy == expected > 0.9
        for task in (streamcut.calibrate, lambda m, d: streamcut.train("ham.zarr", validation=d, **kernel)):
            with pytest.raises(BadInputError, match=r"label 'spam' is 0 here, and 1 in the .*data; .*recipe"):
                task(model, there)
    same = streamcut.train("ham.zarr", validation=rows["ham"], **kernel)
    assert same.history[-1]["validation"] == streamcut.evaluate(same, "ham.zarr").accuracy > 0.8


def test_the_index_base_is_that_of_training(tmp_path):
    for base in (0, 1):
        (tmp_path / f"{base}.svm").write_text(text(150, 4, named=False, base=base))
        streamcut.convert(tmp_path / f"{base}.svm", tmp_path / f"{base}.zarr", index_base=base)
    model = streamcut.train(str(tmp_path / "0.zarr"))
    scores = streamcut.predict(model, str(tmp_path / "1.zarr"), answer="scores")  # a store's features are counted from 0
    np.testing.assert_allclose(streamcut.predict(model, str(tmp_path / "0.svm"), answer="scores"), scores, rtol=1e-6)
    given = streamcut.predict(model, str(tmp_path / "1.svm"), answer="scores", index_base=1)
    np.testing.assert_allclose(given, scores, rtol=1e-6)


def test_words_for_labels_are_known_to_the_model(tmp_path):
    content = text(150, 5, named=False)
    (tmp_path / "words.svm").write_text(content.replace("+1", "spam").replace("-1", "ham"))
    (tmp_path / "numbers.svm").write_text(content)
    streamcut.convert(tmp_path / "words.svm", tmp_path / "words.zarr", label_map="ham=-1,spam=1")
    model = streamcut.train(str(tmp_path / "words.zarr"))
    assert model.recipe.labels.names == {-1.0: "ham", 1.0: "spam"}
    found = [streamcut.evaluate(model, str(tmp_path / name)).measures() for name in ("words.svm", "words.zarr")]
    assert found[0]["accuracy"] == found[1]["accuracy"] > 0.95
    assert streamcut.evaluate(model, str(tmp_path / "numbers.svm")).accuracy == found[0]["accuracy"]


def test_messages_name_no_option_that_predict_lacks(folder, tmp_path):
    (tmp_path / "a.svm").write_text(text(50, 6, named=False))
    streamcut.convert(tmp_path / "a.svm", tmp_path / "a.zarr")
    model = streamcut.train(str(tmp_path / "a.zarr"))
    with pytest.raises(BadInputError, match=r":1:4: the feature index is not a whole number: .*\(the model takes numbered fe"):
        streamcut.predict(model, folder / "named.svm")
    (tmp_path / "b.svm").write_text("spam 1:1\n")
    with pytest.raises(BadInputError, match=r"not a number: spam \(the model was trained on other input"):
        streamcut.evaluate(model, tmp_path / "b.svm")
    with pytest.raises(BadInputError, match="hash_bits=22"):
        streamcut.convert(folder / "named.svm", tmp_path / "c.zarr")


def test_stores_made_of_stores_keep_the_recipe(folder, tmp_path):
    streamcut.convert(folder / "hashed.zarr", tmp_path / "shuffled.h5s", shuffle=1, backend="hdf5")
    assert streamcut.open(tmp_path / "shuffled.h5s").recipe == streamcut.open(folder / "hashed.zarr").recipe
    (tmp_path / "a.svm").write_text(text(20, 3, named=False))
    streamcut.convert(tmp_path / "a.svm", tmp_path / "a.zarr")
    with pytest.raises(BadInputError, match=r"a\.zarr: prepared by another recipe than .*hashed\.zarr"):
        streamcut.convert([folder / "hashed.zarr", tmp_path / "a.zarr"], tmp_path / "both.zarr", n_features=256)


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_damage_to_the_recipe_is_found(folder, tmp_path, backend):
    streamcut.convert(folder / "named.svm", tmp_path / "s", hash_bits=8, backend=backend)
    place = tmp_path / "s/recipe.json"
    content = place.read_bytes()
    place.write_bytes(content.replace(b'"hash_bits":8', b'"hash_bits":9'))
    with pytest.raises(CorruptError, match=r"recipe\.json"):
        streamcut.train(str(tmp_path / "s"))
    place.unlink()
    with pytest.raises(CorruptError, match=r"recipe\.json: missing"):
        streamcut.predict(folder / "h.npz", tmp_path / "s")

"""How features were made is known: raw input is prepared alike, other data are refused by name, stores of one recipe are one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import load_model, save_model
from streamcut.errors import BadInputError, UsageError

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


# --- several stores made by one recipe are one data set: the bits are those of one store with the same shards -----------------

N, ENTRIES = 500, 5  # 100 rows are a shard
OPTIONS = {"solver": "ocas", "C": 1.0, "max_passes": 6, "tol": 1e-9, "tol_relative": None}


def written(folder, features, *, weighted=False, grouped=False, backend="zarr"):
    """The paths of a store of all rows, and of two with the first 300 and the others."""
    rng = np.random.default_rng(4)
    indices = np.concatenate([np.sort(rng.choice(min(features, 90), ENTRIES, replace=False)) for _ in range(N)])
    X = sp.csr_array((rng.normal(size=N * ENTRIES), indices, np.arange(N + 1) * ENTRIES), shape=(N, features))
    columns = {"y": rng.integers(0, 2, N)}
    if weighted:
        columns["weight"] = rng.random(N)
    if grouped:
        columns["qid"] = np.arange(N) // 10
    paths = [str(folder / name) for name in ("whole", "a", "b")]
    for path, rows in zip(paths, (slice(0, N), slice(0, 300), slice(300, N)), strict=True):
        with streamcut.create(path, features, shard_nnz=100 * ENTRIES, backend=backend) as out:
            out.append(X[rows], **{name: column[rows] for name, column in columns.items()})
    return paths


@pytest.mark.parametrize(
    ("features", "columns", "options"),
    [
        (90, {}, {}),
        (90, {}, {"lanes": 3, "workers": 2, "scale": "std"}),
        (90, {"weighted": True}, {"loss": "logistic"}),
        (90, {"grouped": True}, {"task": "ranking"}),
        (90, {"backend": "hdf5"}, {"solver": "auto"}),
        (70_000, {}, {}),  # most features never occur
    ],
)
def test_the_bits_are_those_of_one_store(tmp_path, features, columns, options):
    whole, *parts = written(tmp_path, features, **columns)
    expected, found = (streamcut.train(data, **{**OPTIONS, **options}) for data in (whole, parts))
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.certificate == expected.certificate
    assert found.fingerprint == expected.fingerprint
    assert repr(streamcut.evaluate(found, parts)) == repr(streamcut.evaluate(expected, whole))


def test_the_first_difference_of_recipes_is_named(tmp_path):
    for name, header, ending in (("a", "y,x,c", ""), ("b", "y,x,c", ""), ("more", "y,x,c,extra", ",3")):
        words = "rs" if name == "b" else "pq"
        rows = [f"{k % 2},{k},{words[k % 2]}{ending}" for k in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *rows, ""]))
        streamcut.convert(tmp_path / f"{name}.csv", tmp_path / name, label="y", on_told=None)
    a, b, more = (str(tmp_path / name) for name in ("a", "b", "more"))
    with pytest.raises(BadInputError, match=r"more: prepared by another recipe than .*column 'extra' is used here and not there"):
        streamcut.train([a, more])
    with pytest.raises(BadInputError, match=r"column 'x' is|numbered anew"):
        streamcut.train([a, b])
    streamcut.convert(tmp_path / "b.csv", b, recipe=a, force=True, on_told=None)
    assert streamcut.train([a, b], max_passes=3).recipe == streamcut.open(a).recipe


def test_the_model_opens_them_again(tmp_path, run):
    _, *paths = written(tmp_path, 90)
    assert run("train", *paths, "-o", tmp_path / "m.npz", "--C", "0.1", "-q")[0] == 0
    assert streamcut.load_model(tmp_path / "m.npz").parameters["data"] == paths
    assert run("verify", tmp_path / "m.npz")[0] == 0
    with pytest.raises(UsageError, match="named twice"):
        streamcut.train([paths[0], paths[0]])


def test_columns_and_groups_that_do_not_join(tmp_path):
    for name, qid, weight in (
        ("plain", None, None),
        ("weighted", None, [1.0, 2.0]),
        ("first", [1, 2], None),
        ("next", [2, 3], None),
    ):
        with streamcut.create(tmp_path / name) as out:
            out.append(np.eye(2), [0, 1], qid=qid, weight=weight)
    with pytest.raises(BadInputError, match="some stores have qid or weights and others do not"):
        streamcut.train([str(tmp_path / "plain"), str(tmp_path / "weighted")])
    with pytest.raises(BadInputError, match=r"next: begins with qid 2, with which .*first ends"):
        streamcut.train([str(tmp_path / "first"), str(tmp_path / "next")])

"""Model files: what was trained comes back to the last bit, and what is damaged, or of another version, is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import streamcut
from streamcut.errors import CorruptError, NotFoundError

RBF = {"kernel": "rbf", "gamma": 0.5}
MODELS = {
    "linear": {"task": "binary"},
    "l1": {"task": "binary", "l1": 2.0},
    "classes": {"task": "multiclass"},
    "one-vs-rest": {"task": "multiclass", "strategy": "one-vs-rest", "loss": "logistic"},
    "kernel": {"task": "binary", **RBF, "solver": "smo"},
    "kernel of classes": {"task": "multiclass", **RBF, "epochs": 2},
    "nystroem": {"task": "binary", **RBF, "nystroem": 10},
    "fourier": {"task": "binary", **RBF, "fourier": 10},
    "sequence": {"task": "sequence"},
    "kernel sequence": {"task": "sequence", **RBF, "solver": "sampled-constant", "samples": 20, "tol": 0.1},
}
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5)) * (rng.random((60, 5)) < 0.7)


def trained(name: str):
    several = MODELS[name]["task"] != "binary"
    y = np.arange(60) % 3 if several else np.sign(X[:, 0] + 0.1)
    qid = np.arange(60) // 5 if MODELS[name]["task"] == "sequence" else None
    return streamcut.train(streamcut.rows(X, y, qid=qid), max_time=60, **MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_to_the_last_bit(tmp_path, name):
    model = trained(name)
    model.save(tmp_path / "m.npz")
    again = streamcut.load_model(tmp_path / "m.npz")
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    assert (again.result(), again.parameters, again.history) == (model.result(), model.parameters, model.history)
    again.save(tmp_path / "n.npz")
    assert (tmp_path / "n.npz").read_bytes() == (tmp_path / "m.npz").read_bytes()


def test_words_and_probabilities_come_back(tmp_path):
    rows = [{"color": "red", "size": k, "bought": "yes" if k % 3 else "no"} for k in range(30)]
    Path(tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = streamcut.fit(str(tmp_path / "t.jsonl"), "bought").model
    model.save(tmp_path / "m.npz")
    again = streamcut.load_model(tmp_path / "m.npz")
    assert again.predict(rows).tolist() == model.predict(rows).tolist()
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))


def test_a_flipped_bit_is_refused_or_of_no_consequence(tmp_path):
    model, path = trained("linear"), tmp_path / "m.npz"
    model.save(path)
    sound, refused = path.read_bytes(), 0
    for place in range(0, len(sound), 7):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1 << place % 8]) + sound[place + 1 :])
        try:
            again = streamcut.load_model(path)
        except (CorruptError, NotFoundError):
            refused += 1
            continue
        assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
        assert again.result() == model.result()
    assert refused > 0.8 * len(sound) / 7  # the rest are dates and attributes of its members


def test_a_file_cut_short_is_refused(tmp_path):
    trained("linear").save(tmp_path / "m.npz")
    sound = (tmp_path / "m.npz").read_bytes()
    for size in (0, 3, 40, 100, len(sound) // 2, len(sound) - 1):
        (tmp_path / "m.npz").write_bytes(sound[:size])
        with pytest.raises((CorruptError, NotFoundError)):
            streamcut.load_model(tmp_path / "m.npz")


@pytest.mark.parametrize(("version", "advice"), [(3, r"train again, or use the one that wrote it \(0.0.9\)"), (99, ">= 0.0.9")])
def test_a_file_of_another_version_names_the_one_that_reads_it(tmp_path, version, advice):
    said = {"format": "streamcut model", "version": version, "streamcut_version": "0.0.9", "kind": "linear"}
    np.savez(tmp_path / "m.npz", **{"meta.json": np.frombuffer(json.dumps(said).encode(), np.uint8), "weights": np.zeros(3)})
    with pytest.raises(NotFoundError, match=advice):
        streamcut.load_model(tmp_path / "m.npz")


def test_a_model_of_many_features_that_are_mostly_zero_has_a_small_file(tmp_path):
    wide = np.zeros((40, 30_000))
    wide[np.arange(40), np.arange(40) * 700] = 1.0
    model = streamcut.train((wide, np.arange(40) % 2))
    model.save(tmp_path / "m.npz")
    assert model.weights.nbytes == 240_000
    assert (tmp_path / "m.npz").stat().st_size < 30_000

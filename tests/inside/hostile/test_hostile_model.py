"""Models that somebody made to do harm, sealed as ours are (FAULTS 48): refused with a sentence, or harmless."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from kit.hostile_model import contents
from kit.mutations import mutated
from kit.nights import by_night

import streamcut
from inside.kit.hostile_model import resealed, sealed
from streamcut import load_model
from streamcut.errors import CorruptError, NotFoundError
from streamcut.models.files import _DIGEST, _MARK, _built

TRAINED = {
    "linear": {"solver": "ocas", "max_passes": 3},
    "multiclass": {"task": "multiclass", "strategy": "one-vs-rest", "max_passes": 3},
    "kernel": {"kernel": "rbf", "gamma": 1.0, "epochs": 2},
    "smo": {"kernel": "rbf", "gamma": 1.0, "solver": "smo"},
    "sequence": {"task": "sequence", "max_passes": 3},
    "nystroem": {"kernel": "rbf", "gamma": 1.0, "nystroem": 4, "max_passes": 3},
    "fourier": {"kernel": "rbf", "gamma": 1.0, "fourier": 4, "max_passes": 3},
}
SEED = 1
COMMANDS = [
    "info {model}",
    "predict {model} {rows}.svm",
    "verify {model} {rows}.zarr",
    "evaluate {model} {rows}.zarr --json",
    "report {model} -o page.html --force",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """two.svm, two.zarr (two labels), three.svm, three.zarr, and a model of each kind."""
    folder = tmp_path_factory.mktemp("made")
    values = np.random.default_rng(0).random(40)
    for name, labels in (("two", [-1, 1]), ("three", [1, 2, 3])):
        rows = zip(values, labels * 20, strict=False)
        lines = [f"{label} qid:{k // 4} 1:{label * x:.2f} {2 + k % 5}:1\n" for k, (x, label) in enumerate(rows)]
        (folder / f"{name}.svm").write_text("".join(lines))
        streamcut.convert(folder / f"{name}.svm", folder / f"{name}.zarr")
    for name, options in TRAINED.items():
        model = streamcut.train(str(folder / f"{rows_of(name)}.zarr"), **options)
        streamcut.save_model(model, folder / f"{name}.npz")
    return folder


def rows_of(name: str) -> str:
    return "three" if name == "multiclass" else "two"


@pytest.mark.thirds
@pytest.mark.parametrize("name", by_night(TRAINED, ["fourier", "multiclass"]))
def test_48_every_number_and_type_of_a_model(run, made, tmp_path, monkeypatch, name):
    monkeypatch.chdir(made)
    meta, arrays = contents(made / f"{name}.npz")
    meta["history"] = meta["history"][-2:]
    if name != "linear":  # these are the same for all
        meta["parameters"] = {key: meta["parameters"][key] for key in ("bias", "loss", "nystroem", "seed", "data")}
        meta["resources"]["plan"] = []
    accepted, refusals, forged = [], [], tmp_path / "forged.npz"
    for what, record in mutated(meta):
        try:
            _built("m.npz", record, dict(arrays))
            accepted.append((what, record))
        except (CorruptError, NotFoundError) as error:
            refusals.append(str(error))
        except MemoryError:  # as many features as there may be
            assert what.startswith("n_features"), what
    assert all(10 < len(words) < 600 and "\x1b" not in words for words in refusals)
    assert len(refusals) > 400
    for number, (what, record) in enumerate(accepted[SEED :: max(1, len(accepted) // 12)]):  # scripts/checks/fuzz.py takes all
        forged.write_bytes(sealed(record, arrays))
        for command in COMMANDS[:-1] if number % 4 else COMMANDS[-1:]:  # drawing takes time
            code, out, err = run(*command.format(model=forged, rows=rows_of(name)).split())
            assert (code in (0, 2, 3, 4, 5, 7), "Traceback" in err) == (True, False), (what, command, err)
            assert "\x1b" not in out + err, (what, command)


@pytest.mark.parametrize("name", TRAINED)
def test_48_every_array_of_a_model(made, tmp_path, name):
    meta, arrays = contents(made / f"{name}.npz")
    for key, array in arrays.items():
        odd = [np.zeros((0,)), np.zeros((3, 3, 3)), np.array(["a"]), array.astype(np.float32), array[:-2], np.array(5.0)]
        limits = (np.iinfo(array.dtype).min, np.iinfo(array.dtype).max) if array.dtype.kind in "iu" else (np.nan, np.inf)
        odd += [np.full_like(array, value) for value in limits]
        for changed in odd:
            if changed.dtype == array.dtype and changed.shape == array.shape and (changed == array).all():
                continue
            (tmp_path / "m.npz").write_bytes(sealed(meta, {**arrays, key: changed}))
            try:
                load_model(tmp_path / "m.npz")
                raise AssertionError(f"{key} as {changed.dtype} {changed.shape} {changed.ravel()[:3]}")
            except (CorruptError, NotFoundError):
                pass
        (tmp_path / "m.npz").write_bytes(sealed(meta, {other: kept for other, kept in arrays.items() if other != key}))
        if key != "recipe":  # without one, features are numbers
            with pytest.raises(CorruptError):
                load_model(tmp_path / "m.npz")


def test_48_members_that_claim_to_be_larger_than_the_file(made, tmp_path):
    meta, arrays = contents(made / "linear.npz")
    content = sealed(meta, arrays)
    size = f"({len(arrays['witness'])},)".encode()
    assert content.count(b"'shape': " + size) >= 1
    claimed = b"(9" + b"9" * 9 + b",)"
    at = content.index(b"'shape': " + size, content.index(b"witness.npy"))
    longer = content[:at] + b"'shape': " + claimed
    rest = content[at + len(b"'shape': " + size) :]
    forged = longer + rest[len(claimed) - len(size) :]  # blanks pad the header, so some may go
    (tmp_path / "m.npz").write_bytes(resealed(forged))
    with pytest.raises(CorruptError):
        load_model(tmp_path / "m.npz")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in {"meta.json": np.frombuffer(json.dumps(meta).encode(), np.uint8), **arrays}.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array, version=(1, 0))
        archive.comment = _MARK + b"0" * _DIGEST
    (tmp_path / "m.npz").write_bytes(resealed(buffer.getvalue()))
    with pytest.raises(CorruptError, match="not as long as it says"):
        load_model(tmp_path / "m.npz")


def test_48_a_model_of_another_kind_than_it_says(made, tmp_path):
    for name in TRAINED:
        meta, arrays = contents(made / f"{name}.npz")
        for kind in ("linear", "multiclass", "kernel", "sequence", "nystroem", "kernel-sequence", "other"):
            if kind != meta["kind"]:
                (tmp_path / "m.npz").write_bytes(sealed({**meta, "kind": kind}, arrays))
                with pytest.raises(CorruptError, match="not a well-formed model"):
                    load_model(tmp_path / "m.npz")

"""Labels that the manifest does not list: refused by every solver before a kernel makes an index of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from kit.forging import forge

import streamcut
from streamcut import train
from streamcut.errors import CorruptError
from streamcut.io.memory import MemoryDataset
from streamcut.io.opening import open_dataset

RBF = "--kernel rbf --gamma 0.5"
CLASSES, PAIR, CHAIN = "classes", "pair", "chain"  # stores: four classes, two, four with a qid
COMMANDS = [
    *((PAIR, f"--solver {solver}") for solver in ("bundle-dca", "ocas", "cpa")),
    *((PAIR, f"--loss {loss}") for loss in ("f1", "error")),
    *((PAIR, f"--solver {solver} {RBF}") for solver in ("smo", "bsca", "bsgd", "sbp", "sampled-linear", "sampled-constant")),
    (PAIR, "--task roc-area"),
    *((CLASSES, f"--task multiclass --solver {solver}") for solver in ("bundle-dca", "ocas")),
    (CLASSES, "--task multiclass --strategy one-vs-rest"),
    *((CLASSES, f"--task multiclass --solver {solver} {RBF}") for solver in ("bsca", "sampled-linear", "sampled-constant")),
    (CHAIN, "--task sequence"),
    *((CHAIN, f"--task sequence --solver {solver} {RBF}") for solver in ("sampled-linear", "sampled-constant")),
    (CHAIN, "--task ranking"),
]
NUMBERED = [  # not bsca's: it makes no index of a label
    options for _, options in COMMANDS if ("multiclass" in options or "sequence" in options) and "bsca" not in options
]


def _rows(kind, n=240):
    """(X, y, qid or None)."""
    rng = np.random.default_rng(1)
    y = np.arange(n) % (2 if kind == PAIR else 4) + 1.0
    return sp.random_array((n, 10), density=0.3, format="csr", rng=rng), y, np.arange(n) // 6 if kind == CHAIN else None


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A store of each kind whose second shard has the label 7 in its third row."""
    folder = tmp_path_factory.mktemp("forged")
    for kind in (CLASSES, PAIR, CHAIN):
        X, y, qid = _rows(kind)
        with streamcut.create(folder / kind, 10, shard_nnz=300) as out:
            out.append(X, y, qid=qid)
        stored = open_dataset(folder / kind).read(1).y.copy()
        stored[2] = 7.0
        forge(folder / kind, 1, {"y": stored})
    return folder


@pytest.mark.parametrize(("kind", "options"), COMMANDS, ids=[" ".join(command) for command in COMMANDS])
def test_every_solver_refuses_a_forged_label(run, stores, tmp_path, kind, options):
    code, _, err = run("train", stores / kind, "--model", tmp_path / "m.npz", *options.split())
    assert code == 5
    assert "shards/000001/y: row " in err
    assert "label 7, which the manifest does not list" in err
    assert not (tmp_path / "m.npz").exists()


@pytest.mark.parametrize("options", NUMBERED)
@pytest.mark.parametrize("label", [2.0, 4.0])
def test_classes_are_numbered_only_with_known_labels(options, label):
    """Of data that is no store: the label between two known ones, and the one above all."""
    X, y, qid = _rows(CHAIN)
    data = MemoryDataset(X, y, qid=qid if "sequence" in options else None)
    statistics = data.manifest.statistics
    labels = {known: rows for known, rows in statistics.labels.items() if known != label}
    data.manifest = replace(data.manifest, statistics=replace(statistics, labels=labels))
    words = options.replace("--", "").split()
    chosen = {name: float(value) if name == "gamma" else value for name, value in zip(words[::2], words[1::2], strict=True)}
    with pytest.raises(CorruptError, match=f"row {int(label)}: the manifest has no label {label:g}"):
        train(data, **chosen)

"""Labels that the manifest does not list: refused by every solver before a kernel makes an index of them."""

from __future__ import annotations

import pytest
from kit.shared.forged_labels import CHAIN, CLASSES, COMMANDS, PAIR, _rows

import streamcut
from inside.kit.forging import forge


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A store of each kind whose second shard has the label 7 in its third row."""
    folder = tmp_path_factory.mktemp("forged")
    for kind in (CLASSES, PAIR, CHAIN):
        X, y, qid = _rows(kind)
        with streamcut.create(folder / kind, 10, shard_nnz=300) as out:
            out.append(X, y, qid=qid)
        stored = streamcut.open(folder / kind).read(1).y.copy()
        stored[2] = 7.0
        forge(folder / kind, 1, {"y": stored})
    return folder


@pytest.mark.parametrize(("kind", "options"), COMMANDS, ids=[" ".join(command) for command in COMMANDS])
def test_every_solver_refuses_a_forged_label(run, stores, tmp_path, kind, options):
    code, _, err = run("train", stores / kind, "--output", tmp_path / "m.npz", *options.split())
    assert code == 5
    assert "shards/000001/y: row " in err
    assert "label 7, which the manifest does not list" in err
    assert not (tmp_path / "m.npz").exists()

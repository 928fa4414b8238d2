"""A path over C: every model as good as one trained on its own, in fewer passes, the best one chosen, resumable."""

from __future__ import annotations

import json

import numpy as np
import pytest

from streamcut import load_model
from streamcut.cli import main


def test_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [" ".join([f"{label:+d}", *(f"{j + 1}:{value}" for j, value in enumerate(x))]) for x, label in _points()]
    (tmp_path / "a.svm").write_text("\n".join(rows) + "\n")
    for command in (
        "convert a.svm a.zarr -q",
        "train a.zarr -o m.npz --C 1,0.1,0.001 --validation a.zarr --measure f1 --checkpoint run --json",
    ):
        with pytest.raises(SystemExit) as end:
            main(command.split())
        assert end.value.code == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    tried = [line for line in lines if line["event"] == "model"]
    assert [line["C"] for line in tried] == [0.001, 0.1, 1.0]
    best = max(tried, key=lambda line: line["measures"]["f1"])
    assert best["C"] == load_model("m.npz").C
    assert not (tmp_path / "run").exists()
    for several in (["--C", "1,2"], ["--l1", "1,2"], ["--C", "1,2", "--folds", "2", "--validation", "a.zarr"]):
        with pytest.raises(SystemExit) as end:
            main(["train", "a.zarr", "--output", "n.npz", *several])
        assert end.value.code == 2
        assert "--validation DATA" in capsys.readouterr().err
    command = "train a.zarr -o l.npz --C 0.5 --l1 0.1,3 --validation a.zarr --checkpoint run"
    with pytest.raises(SystemExit) as end:
        main(command.split())
    assert end.value.code == 0
    shown = [line.split() for line in capsys.readouterr().err.splitlines() if line.startswith("l1 ")]
    assert [line[:3:2] for line in shown] == [["l1", "weights"]] * 2
    assert [float(line[1]) for line in shown] == [3.0, 0.1]
    assert load_model("l.npz").l1 in (0.1, 3.0)
    assert not (tmp_path / "run").exists()


def _points():
    rng = np.random.default_rng(3)
    for _ in range(60):
        x = rng.standard_normal(4).round(3)
        yield x, 1 if x @ [1.0, -1.0, 0.5, 0.0] > 0.2 else -1

"""Vowpal Wabbit's text is read as VW reads it, and what cannot be read is refused by file and line."""

from __future__ import annotations

import os

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("|f a", r"x\.vw:3: no label"),
        ("1|f a", r"x\.vw:3: no label before the bar \(a word that touches it is a tag\)"),
        ("one |f a", r"x\.vw:3: label 'one' is not a number"),
        ("1 2 3 |f a", r"x\.vw:3: '3' is an initial prediction"),
        ("1:0.5:2 |f a", r"x\.vw:3: label '1:0.5:2' is not a number"),
        ("1 1 |f a:b", r"x\.vw:3: value 'b' is not a number"),
        ("1 1 |f a:1:2", r"x\.vw:3: value '1:2' is not a number"),
        ("1 x |f a", r"x\.vw:3: importance 'x' is not a number"),
        ("1 -2 |f a", r"x\.vw:3: importance -2 is negative"),
        ("1 1 |f:x a", r"x\.vw:3: scale of a namespace 'x' is not a number"),
        ("1 1 | :2", r"x\.vw:3: a feature without a name"),
        ("1 1 |f a:inf", r"x\.vw:3: value .inf. is not finite"),
        ("1 1 |f:1e200 a:1e200", r"x\.vw:3: value inf does not fit float32"),
        ("1 1 |f:nan b", r"x\.vw:3: scale of a namespace .nan. is not finite"),
        ("nan |f b", r"x\.vw:3: label .nan. is not finite"),
        ("1 1 |f :2", r"x\.vw:3: a feature without a name"),
        ("1\udcff |f a", r"x\.vw:3: label .1\\udcff. is not a number"),
        ("1 |f a:1e39\n1 |f a:b\nx |f a", r"x\.vw:3: value 1e\+39 does not fit float32; use --dtype float64"),
        ("1 x |f a\n1 |f a:b", r"x\.vw:3: importance .x. is not a number"),
    ],
)
def test_lines_that_are_refused(tmp_path, run, line, reason):
    import re

    (tmp_path / "x.vw").write_bytes(os.fsencode(f"1 1 |f a\n\n{line}\n"))
    code, _, said = run("convert", tmp_path / "x.vw", tmp_path / "x.zarr", "-q")
    assert code == 3
    assert re.search(reason, said), said
    assert [path.name for path in tmp_path.iterdir()] == ["x.vw"]


def test_from_text_to_predictions(tmp_path, run):
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 400)
    noise = rng.integers(0, 50, 400)
    text = [f"{2 * k - 1} 1 |f {'x' if k else 'y'}:{1 + v / 50} w{v}" for k, v in zip(kind, noise, strict=True)]
    (tmp_path / "a.vw").write_text("\n".join(text))
    for options in ((), ("--hash-bits", 12)):
        assert run("convert", tmp_path / "a.vw", tmp_path / "a.zarr", *options, "-q", "--force")[0] == 0
        assert run("train", tmp_path / "a.zarr", "--output", tmp_path / "m.npz", "-q", "--force")[0] == 0
        (tmp_path / "b.vw").write_text("\n".join(line.split(" ", 2)[2] + " never_seen" for line in text))
        code, out, said = run("predict", tmp_path / "m.npz", tmp_path / "b.vw")
        assert code == 0
        assert np.mean(np.array(out.split(), float) == 2 * kind - 1) > 0.95
        assert ("features that training did not see: 400" in said) == (not options)
        assert run("predict", tmp_path / "m.npz", tmp_path / "a.zarr")[1] == out or options
    assert run("evaluate", tmp_path / "m.npz", tmp_path / "a.vw")[0] == 0
    assert run("evaluate", tmp_path / "m.npz", tmp_path / "b.vw")[0] == 3
    assert run("convert", tmp_path / "b.vw", tmp_path / "b.zarr", "--label", "none", "--recipe", tmp_path / "m.npz", "-q")[0] == 0
    assert run("predict", tmp_path / "m.npz", tmp_path / "b.zarr")[0] == 0

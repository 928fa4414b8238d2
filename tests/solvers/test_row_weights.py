"""Row weights that nothing can be learnt from, or that overflow, are refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

BAD = 3


def weighted(*weights: str, labels: tuple[int, ...] = (1, -1)) -> str:
    """Rows with these weights, labels in turn."""
    rows = zip(weights, labels * len(weights), strict=False)
    return "".join(f"{label}:{weight} {k % 3 + 1}:1 5:{k + 1}\n" for k, (weight, label) in enumerate(rows))


CASES = {
    "all": (weighted(*["0"] * 6), "", "all rows have weight 0"),
    "one class": (weighted(*["0", "1"] * 3), "", "all rows with label 1 have weight 0"),
    "the rest": (
        weighted(*["1", "0", "0"] * 2, labels=(1, 2, 3)), "--positive-label 1", "a label other than 1 have weight 0",
    ),
    "the positive one": (weighted(*["0", "1", "1"] * 2, labels=(1, 2, 3)), "--positive-label 1", "all rows with label 1"),
    "one of several": (weighted(*["1", "1", "0"] * 2, labels=(1, 2, 3)), "--task multiclass", "all rows with label 3"),
    "one of several, each against the rest": (
        weighted(*["1", "1", "0"] * 2, labels=(1, 2, 3)), "--task multiclass --strategy one-vs-rest", "all rows with label 3",
    ),
    "huge": (weighted("1e308", "1"), "", "add up to 1e\\+308 .*overflow; scale"),
    "huge together": (weighted(*["1e155"] * 4), "", "overflow; scale"),
    "huge with C": (weighted("1e80", "1"), "--C 1e90", "overflow; scale"),
    "huge in one class": (weighted(*["1e307", "1"] * 2), "--kernel rbf --gamma 1 --solver bsca", "overflow; scale"),
}  # fmt: skip


@pytest.mark.filterwarnings("error")  # nothing of NumPy's
@pytest.mark.parametrize("case", CASES)
def test_weights_that_nothing_can_be_learnt_from(run, tmp_path, monkeypatch, case):
    import re

    text, options, words = CASES[case]
    monkeypatch.chdir(tmp_path)
    Path("a.svm").write_text(text)
    assert run("convert", "a.svm", "a.zarr", "--set", "label-weights=yes", "-q")[0] == 0
    code, out, err = run("train", "a.zarr", "--output", "m.npz", *options.split())
    assert (code, out) == (BAD, ""), err
    assert re.search(words, err), err
    assert err.count("\n") == 1  # nothing of NumPy's
    assert not Path("m.npz").exists()


def test_weights_beyond_any_sum_are_refused_by_convert(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.svm").write_text(weighted("1.7e308", "1.7e308"))
    code, _, err = run("convert", "a.svm", "a.zarr", "--set", "label-weights=yes")
    assert (code, "overflow" in err, "Warning" in err) == (BAD, True, False), err

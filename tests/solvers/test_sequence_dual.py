"""Dual ascent on sequences: the cut of what they hold is one, and steps are those of the reference and never go down."""

import pytest
from kit.sequence import sequences

import streamcut
from streamcut import train
from streamcut.errors import UsageError


def test_it_takes_fewer_passes_than_cutting_planes():
    X, y, qid = sequences(400, d=40)
    common = {"task": "sequence", "C": 0.3, "tol_relative": 0.01, "tol": None}
    data = streamcut.rows(X, y, qid=qid)
    ours, theirs = (train(data, solver=solver, **common) for solver in ("bundle-dca", "ocas"))
    assert ours.converged
    assert ours.history[-1]["passes"] < 0.75 * theirs.history[-1]["passes"]
    assert ours.certificate.lower_bound <= theirs.certificate.primal
    assert theirs.certificate.lower_bound <= ours.certificate.primal


def test_it_caches_no_rows():
    X, y, qid = sequences(10)
    with pytest.raises(UsageError, match="row_cache"):
        train(streamcut.rows(X, y, qid=qid), task="sequence", solver="bundle-dca", row_cache="10%")

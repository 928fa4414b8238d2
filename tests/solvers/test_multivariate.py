"""Losses of whole labellings: errors are the hinge loss, and F1 is worth optimising."""

import streamcut
from streamcut import evaluate, train


def test_optimising_f1_gives_a_better_f1(load):
    X, y = load("a9a")
    test = load("a9a", "test")
    data = streamcut.rows(X, y)
    scores = [evaluate(train(data, C=0.1, loss=loss, max_passes=60), test).f1 for loss in ("hinge", "f1")]
    assert scores[1] > scores[0] + 0.01

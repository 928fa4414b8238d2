"""Models of other programs on small problems, and the least objective that certify may claim."""

from __future__ import annotations

from kit.certify import OWN


def foreign(w, b, C, loss, task, intercept):
    """A model of other weights, about which nothing is proved."""
    from streamcut.certifying.problem import Problem

    labels = (-1.0, 1.0) if task == "labels" else None
    problem = Problem(w, b, "it", C=C, loss=loss, labels=labels, options=OWN.get(loss, {}))
    return problem.completed(None, None, intercept).model()

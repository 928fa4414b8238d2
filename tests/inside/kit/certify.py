"""Models of other programs on small problems, and the least objective that certify may claim."""

from __future__ import annotations

from kit.certify import OWN


def foreign(w, b, C, loss, task):
    """A model that says all but the intercept."""
    from streamcut.certifying.problem import Problem
    from streamcut.certifying.running import model_of, nothing

    labels = (-1.0, 1.0) if task == "labels" else None
    problem = Problem(w, b, "it", C=C, loss=loss, fit="free", labels=labels, options=OWN.get(loss, {}))
    return model_of(problem.completed(None, None, None), [nothing()])

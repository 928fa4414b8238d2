"""A linear model as training leaves it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamcut.foundation.rounding import CutError
from streamcut.models.certificate import Certificate, StopReason, Witness
from streamcut.models.linear import LinearModel
from streamcut.problem import NONE, REGULARISED, Problem


def make_model(d=7, bias=1.0, labels=(-1.0, 1.0), seed=0, **changes) -> LinearModel:
    rng = np.random.default_rng(seed)
    certificate = Certificate(12.5, 12.25, 100.0, 1e-3, None, True, StopReason.CONVERGED)
    model = LinearModel(
        weights=rng.normal(size=d) * 10.0 ** rng.integers(-12, 12, size=d),
        intercept=0.3 * bias,
        problem=Problem(labels=labels, C=0.1, intercept=REGULARISED if bias else NONE, bias=bias),
        certificates=(certificate,),
        solver="ocas",
        history=[{"iteration": 0, "primal": np.float64(3.5), "step": float("nan")}],
        parameters={"C": 0.1, "memory": "auto", "target": None},
        fingerprint="abc",
        witnesses=(Witness(rng.normal(size=d + (bias != 0)), 0.25, CutError(1e-12, 1e-13)),),
    )
    return replace(model, **changes)

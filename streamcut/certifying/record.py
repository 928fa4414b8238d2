"""What a certification found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamcut.foundation.shown import Shown
from streamcut.models.certificate import Certificate
from streamcut.models.linear import LinearModel

_FAR = 0.01  # of the objective: if the gap is wider, the verdict says what helps


class AfterPass(NamedTuple):
    """What was known after `passes` passes: parts of the model's objective; the best objective found and the lower bound."""

    passes: int
    at_most: float
    at_least: float
    better_primal: float
    lower_bound: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Certified(Shown):
    """certificate   of the given model: `primal` its objective, `lower_bound` what no weights can go below, `gap`
    at_least      how far it is above the optimum at least, as a part of its objective: better weights were found
    better        the best model that was found, itself a model to save or to predict with
    passes        what was known after each
    intercept     "free", "none", or the value of the bias feature
    rows          that were read
    classes       of one problem for each class, whose sums are given above: (label, certificate, at_least) of each
    """

    certificate: Certificate
    at_least: float
    better: LinearModel
    passes: tuple[AfterPass, ...]
    intercept: str | float
    rows: int
    classes: tuple[tuple[float, Certificate, float], ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether the model's objective is 0 up to rounding."""
        return self.certificate.primal <= 1e-12 * self.certificate.c_bar * self.certificate.unit

    @property
    def at_most(self) -> float:
        """How far the model can be above the optimum at most, as a part of its objective."""
        primal = self.certificate.primal
        return self.certificate.gap / primal if primal > 0.0 else 0.0

    def shown(self) -> dict[str, Any]:
        return {"primal": self.certificate.primal, "at_most": self.at_most, "at_least": self.at_least, "passes": len(self.passes)}

    def in_words(self) -> str:
        """The verdict in two sentences."""
        primal, bound = self.certificate.primal, self.certificate.lower_bound
        if self.nothing:
            return f"The objective is {primal:.3g}, which is 0 but for rounding: these weights are an optimum."
        far = self.at_most > _FAR and self.at_most > 10.0 * self.at_least
        more = " More passes or features of similar size would narrow this." if far else ""
        if self.classes:
            label, found, _ = max(self.classes, key=lambda each: each[1].gap)
            most = 100 * found.gap / primal
            more = f" A sum over {len(self.classes)} classes, with the largest share in {label:g}: {most:.2g} %.{more}"
        return (
            f"At most {100 * self.at_most:.2g} %, at least {100 * self.at_least:.2g} % above the optimum (of its objective). "
            f"The objective is {primal:.8g}, and no weights can reach less than {bound:.8g}.{more}"
        )

    def report(self) -> dict[str, Any]:
        """The same in JSON types."""
        better, names = self.better, ("label", "primal", "lower_bound", "at_least")
        each = [(label, found.primal, found.lower_bound, at_least) for label, found, at_least in self.classes]
        return {
            "rows": self.rows,
            "primal": self.certificate.primal,
            "lower_bound": self.certificate.lower_bound,
            "gap": self.certificate.gap,
            "at_most": self.at_most,
            "at_least": self.at_least,
            "better_primal": self.passes[-1].better_primal,
            "better_intercept": np.asarray(better.intercept).tolist(),
            "intercept": self.intercept,
            "passes": [each._asdict() for each in self.passes],
            "classes": [dict(zip(names, one, strict=True)) for one in each],
        }

"""The result of `fit`: the model, and a summary of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamcut.foundation.shown import Shown, visible
from streamcut.foundation.units import format_number
from streamcut.models.certificate import Certificate
from streamcut.models.model import Model
from streamcut.prediction import predict
from streamcut.reports.named_weights import Weight, weights

_TOP = 10  # features
_SEVERAL = 3, 8  # features per class with several classes, and number of classes
_SAID = ("accuracy", "roc_auc", "macro_f1", "r2", "root_mean_squared_error")  # in addition to the measure that C was chosen by


@dataclass(frozen=True, eq=False, repr=False)
class Fitted(Shown):
    """A model of all rows, and the measures of a model with the same options on rows that it had not seen.

    model       trained with `C` on all rows
    C           the best on the held-out rows of those in `tried`: {C: value of `measure`}
    measures    all of streamcut.evaluate on the held-out rows, for the model with that C
    baseline    {measure: its value without any feature}: predicting the shares of the labels, or their mean
    shares      {label, a word or a number: its share of all rows}; empty for a regression
    rows        (rows trained on to choose C, rows held out); how: which rows were held out
    remarks     sentences about possible mistakes in the data
    store       path of the store made of the data, if kept, else None
    """

    model: Model
    C: float
    measure: str
    tried: dict[float, float]
    measures: dict[str, Any]
    baseline: dict[str, float]
    shares: dict[str | float, float]
    rows: tuple[int, int]
    how: str
    remarks: list[str] = field(default_factory=list)
    store: str | None = None
    seconds: float = 0.0

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of `model`; None where its solver gives none, or one for each class."""
        return self.model.certificate if len(self.model.certificates) == 1 else None

    @property
    def largest(self) -> list[Weight]:
        """The weights largest in magnitude, with feature names: ten, or three for each of the first eight classes."""
        if not self.model.of_features or self.model.n_features == 0:
            return []
        several = self.model.scores_per_row > 1
        found = [each for each in weights(self.model, top=_SEVERAL[0] if several else _TOP) if each.feature is not None]
        return found[: _SEVERAL[0] * _SEVERAL[1]] if several else found

    def predict(self, rows: Any) -> np.ndarray:
        """Labels, or words, of `rows`: all that streamcut.predict takes, including one row as a dict; raises as that does."""
        return predict(self.model, rows)

    def predict_proba(self, rows: Any) -> np.ndarray:
        """Probabilities of `rows`, float64: (n,) of the positive label, or (n, classes). Raises as streamcut.predict does."""
        return predict(self.model, rows, answer="probabilities")

    def shown(self) -> dict[str, Any]:
        base = self.baseline.get(self.measure)
        held = {self.measure: self.measures[self.measure], f"{self.measure} without features": base}
        return {"model": type(self.model).__name__, "C": self.C, **held, "converged": self.model.converged}

    def in_words(self) -> str:
        """A readable summary: rows, labels, measures next to those without features, certificate, weights, remarks."""
        return "\n".join(map(visible, self._lines()))

    def _lines(self) -> list[str]:
        training, held = self.rows
        found = [f"{training + held:,} rows, of which {held:,} were held out to choose C ({self.how})."]
        if self.shares:
            common = sorted(self.shares.items(), key=lambda each: -each[1])
            said = ", ".join(f"{_label(label)} {100 * share:.3g} %" for label, share in common[:5])
            found.append(f"Labels: {said}{f' and {len(common) - 5} more' if len(common) > 5 else ''}.")
        found.append("")
        names = [self.measure, *(name for name in _SAID if name != self.measure and name in self.measures)]
        lines = [["On rows held out", "this model", "without features"]]
        for name in names:
            base = self.baseline.get(name)
            lines.append(
                [name.replace("_", " "), format_number(self.measures[name]), "" if base is None else format_number(base)]
            )
        widths = [max(len(line[k]) for line in lines) for k in range(3)]
        found += [f"{name:<{widths[0]}}  {value:>{widths[1]}}  {base:>{widths[2]}}".rstrip() for name, value, base in lines]
        tried = ", ".join(f"{C:g}: {format_number(value)}" for C, value in sorted(self.tried.items()))
        found += [f"C = {self.C:g} was best ({tried}); with it all rows were trained on.", "", self.model.in_words()]
        largest = self.largest
        if largest:
            found += ["", "Largest weights:"]
            several, wide = self.model.scores_per_row > 1, max(len(_name(each)) for each in largest)
            found += [
                f"  {_name(each):<{wide}}  {each.weight:+.4g}{f'  ({_label(each.label)})' if several else ''}" for each in largest
            ]
        return [*found, *([""] if self.remarks else []), *(f"Note: {remark}" for remark in self.remarks)]


def _label(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float | int) else str(label)


def _name(weight: Weight) -> str:
    return weight.name or f"feature {weight.feature}"

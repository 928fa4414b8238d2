"""The loss of a model trained on the scores of all rows at once, which `verify` compares with the certificate."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.loss_table import LABELLING_LOSSES
from streamcut.losses.multivariate import Multivariate, rows_of
from streamcut.losses.one_class import OneClass
from streamcut.losses.pairs import Pairs, PairsOfLevels
from streamcut.losses.scores import OneGroupRisk
from streamcut.models.linear import LinearModel
from streamcut.oracles.one_group import CODE_TYPE, OneGroup
from streamcut.oracles.row_blocks import RowBlocks


class GlobalLoss:
    """Keeps 24 bytes a row, and takes 40 to 80 while it sorts them."""

    row_bytes: ClassVar[tuple[int, int]] = (112, 112)

    def __init__(self, model: LinearModel) -> None:
        self._model = model
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []

    @staticmethod
    def trained(model: LinearModel) -> bool:
        """Whether such a loss was minimised."""
        return model.task in ("one-class", "ranking", "roc-area") or model.parameters.get("loss") in LABELLING_LOSSES

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores; raises BadInputError for labels that the model does not know."""
        if self._model.task == "one-class":
            self._parts.append((np.zeros(chunk.n_rows), scores - self._model.intercept, None))
            return
        y = chunk.y.copy() if self._model.labels is None else self._model.is_positive(chunk.y, chunk.first_row).astype(np.float64)
        self._parts.append((y, scores.copy(), None if chunk.qid is None else chunk.qid.copy()))

    def offset(self) -> float | None:
        """ρ of the plane ⟨w, x⟩ = ρ of one class, as its training places it; None for other tasks. Read it before `value`."""
        if self._model.task != "one-class":
            return None
        s = np.concatenate([part[1] for part in self._parts])
        whole = int(self._model.parameters["nu"] * len(s))
        last = max(whole - 1, 0)  # of those below the plane
        ordered = np.partition(s, [last, min(last + 1, len(s) - 1)])
        return float(ordered[last] if whole in (0, len(s)) else 0.5 * ordered[last] + 0.5 * ordered[last + 1])

    def value(self) -> float:
        """R of all rows. Raises UsageError when there are fewer than k."""
        y, scores = (np.concatenate([part[i] for part in self._parts]) for i in (0, 1))
        qids = [part[2] for part in self._parts if part[2] is not None]
        self._parts.clear()
        parameters, labels = self._model.parameters, np.unique(y)
        if self._model.task == "one-class":
            return _of_one_group(OneClass(parameters["nu"]), y, scores)
        if self._model.labels is not None:
            k = parameters.get("k")
            return _of_one_group(Multivariate(parameters["loss"], 1.0, 0 if k is None else rows_of(k, len(y))), y, scores)
        normalisation = parameters.get("normalisation", "pairs")
        if not qids and len(labels) <= PairsOfLevels.MOST:
            return _of_one_group(PairsOfLevels(tuple(labels.tolist()), normalisation), y, scores)
        risk, starts = Pairs(normalisation), np.array([0, len(y)])
        if qids:
            qid = np.concatenate(qids)
            starts = np.append(np.flatnonzero(np.append(True, qid[1:] != qid[:-1])), len(y))
        codes: np.ndarray = np.empty(len(y), risk.code_type)
        risk.encode(y, starts, codes)
        weights = risk.weights(risk.sizes(codes, starts))
        return float(risk.evaluate(codes, starts, weights, scores, np.empty(len(y)))[0].sum())


def _of_one_group(risk: OneGroupRisk, y: np.ndarray, scores: np.ndarray) -> float:
    rows = {"z": y, "code": np.empty(len(y), CODE_TYPE), "c": np.empty(len(y))}
    group = OneGroup(risk, RowBlocks(len(y), lambda: rows, lambda start, stop: None))
    group.begin(None)
    rows["z"] = scores
    return group.value(None)[0]

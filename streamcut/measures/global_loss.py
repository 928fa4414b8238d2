"""The loss of a model whose training looked at the scores of all rows at once: what `verify` compares with the certificate."""

from __future__ import annotations

import numpy as np

from streamcut.chunk import Chunk
from streamcut.models.linear import LinearModel
from streamcut.risks.multivariate import Multivariate, rows_of
from streamcut.risks.pairs import Pairs


class GlobalLoss:
    """Keeps 24 bytes a row, and takes 80 while it sorts them."""

    def __init__(self, model: LinearModel) -> None:
        self._model = model
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []

    @staticmethod
    def trained(model: LinearModel) -> bool:
        """Whether such a loss was minimised."""
        return model.task in ("ranking", "roc-area") or model.parameters.get("loss", "hinge") != "hinge"

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores; raises BadInputError for labels that the model does not know."""
        y = chunk.y.copy() if self._model.labels is None else self._model.is_positive(chunk.y, chunk.first_row).astype(np.float64)
        self._parts.append((y, scores.copy(), None if chunk.qid is None else chunk.qid.copy()))

    def value(self) -> float:
        """R of all rows. Raises UsageError when there are fewer than k."""
        y, scores = (np.concatenate([part[i] for part in self._parts]) for i in (0, 1))
        qids = [part[2] for part in self._parts if part[2] is not None]
        self._parts.clear()
        starts = np.array([0, len(y)])
        parameters = self._model.parameters
        risk: Pairs | Multivariate
        if self._model.labels is None:
            risk = Pairs(parameters["normalisation"])
            if qids:
                qid = np.concatenate(qids)
                starts = np.append(np.flatnonzero(np.append(True, qid[1:] != qid[:-1])), len(y))
        else:
            k = parameters["k"]
            risk = Multivariate(parameters["loss"], 1.0, 0 if k is None else rows_of(k, len(y)))
        codes: np.ndarray = np.empty(len(y), risk.code_type)
        risk.encode(y, starts, codes)
        weights = risk.weights(risk.sizes(codes, starts))
        return float(risk.evaluate(codes, starts, weights, scores, np.empty(len(y)))[0].sum())

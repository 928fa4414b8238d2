"""A linear model of features that approximate a kernel: any model whose rows pass through a feature map first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.kernels.feature_map import FeatureMap
from streamcut.models.certificate import StopReason
from streamcut.models.link import OwnLink
from streamcut.models.model import Model, common_parts


@dataclass(frozen=True, eq=False, repr=False)
class MappedModel(Model):
    """Maps rows by `map`, then applies `inner`, whose certificate is for the problem in the mapped features."""

    inner: Any
    map: FeatureMap

    kind: ClassVar[str] = "mapped"

    def __post_init__(self) -> None:
        if self.inner.n_features != self.map.n_features:
            raise ValueError(f"a model of {self.inner.n_features} features does not fit a map to {self.map.n_features}")

    @classmethod
    def around(cls, inner: Model, feature_map: FeatureMap) -> Self:
        return cls(inner=inner, map=feature_map, **common_parts(inner))

    def __getattr__(self, name: str) -> Any:
        """Attributes of the inner model's kind: labels, is_positive, …"""
        if name.startswith("_") or name in ("inner", "map"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def n_features(self) -> int:
        return self.map.dimension

    @property
    def scores_per_row(self) -> int:
        return self.inner.scores_per_row

    @property
    def converged(self) -> bool:
        return self.inner.converged

    @property
    def stop_reason(self) -> StopReason:
        return self.inner.stop_reason

    @property
    def own_link(self) -> OwnLink | None:
        return self.inner.own_link

    def in_words(self) -> str:
        return self.inner.in_words()

    def result(self) -> dict[str, Any]:
        return {**self.inner.result(), "map": self.map.kind, "map_features": self.map.n_features}

    def score_chunk(self, chunk: Chunk) -> np.ndarray:
        return self.inner.score_chunk(self.map.mapped(chunk))

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        return self.inner.labels_of(scores)

    def describe(self) -> dict[str, Any]:
        own = {"n_features": self.n_features, "kernel": self.map.kernel.as_dict()}
        return {**self.inner.describe(), **own, "map": self.map.kind, "map_features": self.map.n_features, **self.map.identity}

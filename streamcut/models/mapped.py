"""A linear model of features that approximate a kernel: any model whose rows pass through a feature map first."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.foundation.fields import Fields
from streamcut.kernels.feature_map import FeatureMap
from streamcut.kernels.fourier import FourierMap
from streamcut.kernels.nystroem import NystroemMap
from streamcut.models.certificate import StopReason
from streamcut.models.model import Model, common_parts
from streamcut.models.stated import MOST_FEATURES, common_from, kernel_from

_MAPS: dict[str, type[FeatureMap]] = {each.kind: each for each in (NystroemMap, FourierMap)}


@dataclass(frozen=True, eq=False, repr=False)
class MappedModel(Model):
    """Maps rows by `map`, then applies `inner`, whose certificate is for the problem in the mapped features."""

    inner: Any
    map: FeatureMap

    kind: ClassVar[str] = "mapped"

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

    def in_words(self) -> str:
        return self.inner.in_words()

    def result(self) -> dict[str, Any]:
        return {**self.inner.result(), "map": self.map.kind, "map_features": self.map.n_features}

    def score_chunk(self, chunk: Chunk) -> np.ndarray:
        return self.inner.score_chunk(self.map.mapped(chunk))

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        return self.inner.labels_of(scores)

    def parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        inner, arrays = self.inner.parts()
        drawn, own = self.map.parts()
        meta = {"inner_kind": self.inner.kind, "inner": inner, "kernel": self.map.kernel.as_dict(), "n_features": self.n_features}
        meta["map"] = {"kind": self.map.kind, **drawn}
        return meta, {**own, **{f"inner.{name}": array for name, array in arrays.items()}}

    @classmethod
    def from_parts(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        from streamcut.models.files import _KINDS

        given = Fields(meta, "model")
        module, name = _KINDS[given.text("inner_kind", [kind for kind in _KINDS if kind != cls.kind])]
        inner = getattr(import_module(module), name).from_parts(
            {**meta, **given.object("inner").plain()},
            {key.removeprefix("inner."): array for key, array in arrays.items() if key.startswith("inner.")},
        )
        drawn, n_features = given.object("map"), given.integer("n_features", 0, MOST_FEATURES)
        feature_map = _MAPS[drawn.text("kind", _MAPS)].from_parts(kernel_from(given.object("kernel")), n_features, drawn, arrays)
        if inner.n_features != feature_map.n_features:
            raise ValueError(f"a model of {inner.n_features} features does not fit a map to {feature_map.n_features}")
        return cls(inner=inner, map=feature_map, **common_from(meta))

    def describe(self) -> dict[str, Any]:
        own = {"n_features": self.n_features, "kernel": self.map.kernel.as_dict()}
        return {**self.inner.describe(), **own, "map": self.map.kind, "map_features": self.map.n_features, **self.map.identity}

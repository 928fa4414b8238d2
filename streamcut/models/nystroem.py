"""A linear model of Nyström features: any model that rows reach through a feature map."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.chunk import Chunk
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.nystroem import FeatureMap
from streamcut.models.certificate import StopReason
from streamcut.models.model import Model, checked, common_from, common_parts


@dataclass(frozen=True, eq=False, repr=False)
class NystroemModel(Model):
    """Rows get the features of `map`, `inner` does the rest; its certificate is about the problem in these features."""

    inner: Any
    map: FeatureMap

    kind: ClassVar[str] = "nystroem"

    @classmethod
    def around(cls, inner: Model, feature_map: FeatureMap) -> Self:
        return cls(inner=inner, map=feature_map, **common_parts(inner))

    def __getattr__(self, name: str) -> Any:
        """What only models of the inner kind have: labels, is_positive, …"""
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
        return {**self.inner.result(), "landmarks": self.map.n_features}

    def score_chunk(self, chunk: Chunk) -> np.ndarray:
        return self.inner.score_chunk(self.map.mapped(chunk))

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        return self.inner.labels_of(scores)

    def parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        inner, arrays = self.inner.parts()
        rows = self.map.landmarks
        own = {
            "landmarks_indptr": rows.indptr.astype(np.int64),
            "landmarks_indices": rows.indices.astype(np.int64),
            "landmarks_data": np.ones(rows.nnz) if rows.data is None else rows.data.astype(np.float64),
            "projection": self.map.projection,
        }
        meta = {"inner_kind": self.inner.kind, "inner": inner, "kernel": self.map.kernel.as_dict(), "n_features": self.n_features}
        return meta, {**own, **{f"inner.{name}": array for name, array in arrays.items()}}

    @classmethod
    def from_parts(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        from streamcut.models.files import _KINDS

        module, name = _KINDS[meta["inner_kind"]]
        common = common_from(meta)
        inner = getattr(import_module(module), name).from_parts(
            {**meta, **meta["inner"]},
            {key.removeprefix("inner."): array for key, array in arrays.items() if key.startswith("inner.")},
        )
        indptr, indices, d = arrays["landmarks_indptr"], arrays["landmarks_indices"], int(meta["n_features"])
        r = len(indptr) - 1
        if indptr.dtype != np.int64 or indptr[0] != 0 or indptr[-1] != len(indices) or np.any(np.diff(indptr) < 0):
            raise ValueError("landmarks_indptr does not fit the landmarks")
        if indices.dtype != np.int64 or (len(indices) and not 0 <= indices.min() <= indices.max() < d):
            raise ValueError("landmarks_indices do not fit the landmarks")
        if inner.n_features != r:
            raise ValueError(f"a model of {inner.n_features} features does not fit {r} landmarks")
        rows = Chunk(indptr, indices, checked(arrays, "landmarks_data", len(indices)), np.zeros(r))
        return cls(inner=inner, map=FeatureMap(Kernel(**meta["kernel"]), rows, d, checked(arrays, "projection", r, r)), **common)

    def describe(self) -> dict[str, Any]:
        own = {"n_features": self.n_features, "kernel": self.map.kernel.as_dict(), "landmarks": self.map.n_features}
        return {**self.inner.describe(), **own}

"""The contract on one page: what the parts of a training demand of each other, in the order in which rows pass through.

Rows come as `Chunk`s (streamcut.foundation.chunk). Arrays are float64 unless said: n rows, d features, K scores of a row.
What is named …Like holds of all that derive from the base that its text names, which has more; at the end mypy proves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np

    from streamcut.execution.passes import Pass
    from streamcut.foundation.chunk import Chunk
    from streamcut.io.manifest import Manifest
    from streamcut.io.recipe.recipe import Recipe
    from streamcut.io.stores.store import Store
    from streamcut.kernels.maps import FeatureMap
    from streamcut.losses.loss import Loss
    from streamcut.models.certificate import Cut
    from streamcut.models.model import Model
    from streamcut.oracles.decomposable import DecomposableOracle
    from streamcut.solvers import cpa, progress

Sums = TypeVar("Sums")  # what a pass adds up; None: nothing


class Dataset(Protocol):
    """Shards of rows. Several threads may read, each with its own buffers.

    path     None: it lives in memory; recipe: how its rows became features, None when unknown
    buffers  reusable memory for one reading thread, large enough for every shard (see `shard_bytes`)
    read     a shard, verified; with `buffers` its arrays are views into them, valid until their next use. `y` and `weight` are
             float64, `qid` int64, `data` None where all values are 1. Raises CorruptError naming the shard and the array
    """

    manifest: Manifest
    path: str | None

    @property
    def recipe(self) -> Recipe | None: ...
    @property
    def held_bytes(self) -> int: ...  # of memory that reading takes besides the buffers
    def buffers(self) -> Any: ...
    def read(self, shard: int, buffers: Any = None) -> Chunk: ...
    def expect(self, *shards: int) -> None: ...  # this thread reads them next, in this order: they can be prefetched


class PassLike(Protocol[Sums]):
    """Adds up over all rows, lane by lane (execution.passes.Pass); `rows`: the row state of these rows by name, (n, …) each."""

    def begin(self, first_row: int) -> Sums: ...  # 0, for the lane that begins there
    def visit_chunk(self, partial: Sums, rows: dict[str, np.ndarray], chunk: Chunk) -> None: ...  # consecutive rows
    def finish(self, partial: Sums, rows: dict[str, np.ndarray], first_row: int) -> None: ...  # a whole lane
    def merge(self, total: Sums, part: Sums) -> Sums: ...  # the sum of both, lane after lane


class LossLike(Protocol):
    """ℓ(z; y) ≥ 0, convex in z = σ·score − t, of a row; f = −ℓ′(z) is its share, C u f its dual variable (losses.loss.Loss)."""

    targets: ClassVar[Literal["labels", "numbers"]]
    smooth: ClassVar[bool]

    def value(self, z: float, y: float) -> float: ...  # ℓ
    def dual(self, z: float, y: float) -> float: ...  # f, right of a kink
    def conjugate(self, f: float, y: float) -> float: ...  # ℓ*(−f) = sup_z (−f z − ℓ(z; y))
    def step(self, f: float, z: float, q: float, y: float) -> float: ...  # the best share along the row, q = C u ‖x‖²


class OracleLike(Protocol):
    """Σ u_i ℓ_i(w), w (dimension,), by passes: values not below, planes not above (oracles.decomposable.DecomposableOracle)."""

    dimension: int

    def start(self, w: np.ndarray | None = None) -> tuple[Cut, float]: ...  # the first pass, at w or 0: plane and value
    def cut_at(self, w: np.ndarray) -> tuple[Cut, float]: ...  # one pass: the plane that touches at w, and the value
    def step(self, k: float, w_b: np.ndarray) -> float: ...  # value at the new w_b = w_b + k(w − w_b), without a pass


class MethodLike(Protocol):
    """A solver: passes of an oracle until its progress ends it, of which at most `max_cuts` planes are kept."""

    def __call__(self, oracle: DecomposableOracle, progress: progress.Progress, *, max_cuts: int) -> progress.Solution: ...


class ModelLike(Protocol):
    """Scores rows, (n,) or (n, K), after `map` has made features of a kernel, if there is one (models.model.Model)."""

    @property
    def map(self) -> FeatureMap | None: ...
    @property
    def scores_per_row(self) -> int: ...
    def score_chunk(self, chunk: Chunk) -> np.ndarray: ...


if TYPE_CHECKING:

    def _parts(store: Store, a: Pass[Any], loss: Loss, oracle: DecomposableOracle, model: Model) -> None:
        _: tuple[Dataset, PassLike[Any], LossLike, OracleLike, ModelLike, MethodLike] = store, a, loss, oracle, model, cpa.solve

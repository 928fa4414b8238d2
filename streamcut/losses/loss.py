"""What a loss of single rows says of itself: the one truth for training, `verify`, `evaluate` and tests.

The loss of row i is u_i ℓ(z_i; y_i) of z_i = σ_i s_i − t_i, where s_i is its score: a margin (σ = ±1, t = 0) for labels, a
residual (σ = 1, t = y) for numbers. ℓ is convex in z, 0 at the least. In the dual a row has a share f = −ℓ′(z), α_i = C u_i f_i;
the cut that shares f stand for is

    Σ u_i ℓ(z_i) ≥ ⟨a, w⟩ + b,    a = −Σ u_i σ_i f_i x_i,    b = Σ u_i (f_i t_i − ℓ*(−f_i)).

A loss is a NamedTuple of its parameters. Its methods are plain functions of numbers: Python calls them, and kernels have them
compiled in (streamcut.compiled.loss). So they may use arithmetic, `math`, each other, and what streamcut.compiler.jit.inlined
decorates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from streamcut.foundation.rounding import LossRounding

FREE_FIRST = 1e3  # added to the priority of rows whose share is at a bound: free rows come first, whatever their z


class TargetScale(NamedTuple):
    """How large targets and losses are: Σ u, the targets' range, Σ u target_size, Σ u ℓ at w = 0; each at least what it says."""

    weight: float
    lowest: float
    highest: float
    targets: float
    loss_at_zero: float

    @property
    def farthest(self) -> float:
        """The largest |t|."""
        return max(abs(self.lowest), abs(self.highest))


class Loss(ABC):
    """Base of all.

    targets      what rows have: "labels" (a positive one and others) or "numbers"
    smooth       ℓ is differentiable: the line search asks for `curvature`; otherwise it is piecewise linear, with `kinks`
    keeps_target ℓ(z; y) depends on y beside z
    least_target of numbers: there are none below it
    least_curvature  ℓ* bends by so much everywhere, where that is more than a little
    free_below   the priorities of rows whose share is at no bound
    """

    __slots__ = ()
    targets: ClassVar[Literal["labels", "numbers"]]
    smooth: ClassVar[bool]
    keeps_target: ClassVar[bool] = False
    least_target: ClassVar[float] = -np.inf
    free_below: ClassVar[float] = FREE_FIRST
    least_curvature: ClassVar[float] = 0.0
    code_type: ClassVar[type[np.generic]]

    @abstractmethod
    def sign(self, y: float) -> float:
        """σ."""

    @abstractmethod
    def offset(self, y: float) -> float:
        """t."""

    @abstractmethod
    def value(self, z: float, y: float) -> float:
        """ℓ(z; y)."""

    @abstractmethod
    def dual(self, z: float, y: float) -> float:
        """f = −ℓ′(z; y); at a kink the right derivative counts."""

    @abstractmethod
    def conjugate(self, f: float, y: float) -> float:
        """ℓ*(−f) = sup_z (−f z − ℓ(z; y)), 0 at f = 0."""

    @abstractmethod
    def constant(self, f: float, y: float) -> float:
        """f t − ℓ*(−f): what share f adds to the constant b of a cut."""

    @abstractmethod
    def lowest(self, y: float) -> float:
        """The least share, which may be −∞."""

    @abstractmethod
    def highest(self, y: float) -> float:
        """The greatest share, which may be ∞."""

    @abstractmethod
    def step(self, f: float, z: float, q: float, y: float) -> float:
        """The share f′ that maximises the dual along a row: f′ z + ½q(f′ − f)² + ℓ*(−f′) is least. z is at the present w′, where
        the share is f, q = C u ‖x‖² > 0."""

    @abstractmethod
    def stays(self, f: float, z: float, slack: float, y: float) -> bool:
        """Whether f is at a bound where z, more than `slack` from where that changes, keeps it."""

    @abstractmethod
    def free(self, f: float, y: float) -> bool:
        """Whether another step of such a row is worth while."""

    @abstractmethod
    def violation(self, f: float, z: float, y: float) -> float:
        """How far z is from where share f would be the answer."""

    @abstractmethod
    def priority(self, f: float, z: float, norm: float, y: float) -> float:
        """Of rows in a cache: the less, the more the row may still move. norm = u ‖x‖²."""

    # -- line search ------------------------------------------------------------------------------------------------------

    def curvature(self, f: float, z: float, y: float) -> float:
        """ℓ″(z; y) of a smooth loss, any generalised one where ℓ′ has a kink; f = −ℓ′(z; y), which is known."""
        return 0.0

    def curvature_within(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(least, greatest) ℓ″ for z from low to high, float64 (n,) each, but for a few roundings; (0, ∞): ℓ has none."""
        return np.zeros(len(low)), np.full(len(low), np.inf)

    def kinks(self) -> int:
        """Of a piecewise linear loss: the number of kinks, at each of which ℓ′ rises by 1."""
        return 0

    def kink(self, j: int) -> float:
        """The z of kink j."""
        return 0.0

    # -- rounding, and sums on exact grids: streamcut.foundation.rounding --------------------------------------------------------

    @property
    def rounding(self) -> LossRounding:
        """Λ = max |f|, and how many roundings value and conjugate take."""
        return LossRounding()

    def sized(self) -> bool:
        """Whether `size` is not simply the constant, and that not |f|, as it is with the hinge."""
        return True

    def size(self, f: float, y: float) -> float:
        """What the roundings of `constant` are a part of: the sum of the absolute values that it is made of."""
        return abs(self.conjugate(f, y))

    def target_size(self, y: float) -> float:
        """The size of what is subtracted from a score on the way to ℓ, a rounding each of it and of the difference: |t|."""
        return abs(self.offset(y))

    def largest_target_size(self, scale: TargetScale) -> float:
        """At least that of every row."""
        return scale.farthest

    def unbounded(self) -> bool:
        """Whether shares have no bounds on one side."""
        return False

    def steepest(self, seen: float, near: float, scale: TargetScale) -> float:
        """Λ within `near` of points where no |share| is above `seen`."""
        return self.rounding.slope

    def limited(self, f: float, limit: float, u: float) -> float:
        """f, cut to the largest share that a row of weight u can have at the optimum, given the `limit` of one of weight 1."""
        return f

    @abstractmethod
    def largest_sums(self, rows: int, scale: TargetScale) -> tuple[float, float, float]:
        """(Σ u |f|, Σ u |constant|, limit): what sums over `rows` rows can be at most, shares being `limited`."""

    def prediction(self, scores: np.ndarray) -> np.ndarray:
        """Of numbers as targets: what scores (n,) predict."""
        return scores

    # -- units --------------------------------------------------------------------------------------------------------------

    def constants(self, scale: TargetScale) -> np.ndarray:
        """Of numbers as targets: equal scores for all rows, of which one is not far from the best."""
        return np.append(np.linspace(scale.lowest, scale.highest, 65), 0.0)

    def middle(self, scale: TargetScale) -> float:
        """Of numbers as targets: the score of a target half-way between the lowest and the highest; rows pull both ways there."""
        return 0.5 * (scale.highest - scale.lowest) + scale.lowest

    # -- how rows remember shares: streamcut.losses.codes -------------------------------------------------------------------

    @abstractmethod
    def encode(self, f: float):
        """The code of a share, of type `code_type`."""

    @abstractmethod
    def decode(self, code, y: float) -> float:
        """The share of a code, in [lowest, highest]."""

    @abstractmethod
    def merged(self, code, other, weight: float):
        """The code of (1 − weight)·(share of `code`) + weight·(share of `other`)."""

    @staticmethod
    @abstractmethod
    def parts(mixture: np.ndarray) -> np.ndarray:
        """`mixture` (cuts,), parts of 1, as `mixed` takes it."""

    @abstractmethod
    def mixed(self, codes: np.ndarray, i: int, parts: np.ndarray, y: float) -> float:
        """Σ_t parts[t] · (share of codes[i, t]), a part for each column of codes."""


class OfLabels(NamedTuple):
    """The parameters of losses of labels: which label is the positive one."""

    positive: float = 1.0


class MarginLoss(Loss):
    """Base of losses of the margin z = y s, y = 1 for the label `positive` and −1 for every other."""

    __slots__ = ()
    targets = "labels"
    positive: float

    def sign(self, y):
        return 1.0 if y == self.positive else -1.0

    def offset(self, y):
        return 0.0

    def constant(self, f, y):
        return -self.conjugate(f, y)

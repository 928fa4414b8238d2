"""The interface of a loss of single rows: one definition for training, `verify`, `evaluate` and tests.

The loss of row i is u_i ℓ(z_i; y_i) of z_i = σ_i s_i − t_i, where s_i is its score: a margin (σ = ±1, t = 0) for labels, a
residual (σ = 1, t = y) for numbers. ℓ is convex in z and nonnegative. In the dual a row has a share f = −ℓ′(z), α_i = C u_i f_i;
the cut that shares f stand for is

    Σ u_i ℓ(z_i) ≥ ⟨a, w⟩ + b,    a = −Σ u_i σ_i f_i x_i,    b = Σ u_i (f_i t_i − ℓ*(−f_i)).

A loss is a NamedTuple of its parameters. Its methods are plain functions of numbers, called from Python and compiled into kernels
(streamcut.compiled.loss). So they may use arithmetic, `math`, each other, and functions decorated with
streamcut.compiler.jit.inlined.

How rows remember their shares: 16 bits for shares in [0, 1], 32-bit floats for others.

A cut is summed from the remembered shares without further rounding, so both agree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from streamcut.compiled.linear import code_of, share_of
from streamcut.foundation.rounding import LossRounding

FREE_FIRST = 1e3  # added to the priority of rows whose share is at a bound: free rows come first, regardless of z


class TargetScale(NamedTuple):
    """The scale of targets and losses: Σ u, the targets' range, Σ u target_size, Σ u ℓ at w = 0; upper bounds."""

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

    targets      kind of targets: "labels" (a positive one and others) or "numbers"
    smooth       ℓ is differentiable: Newton's method uses `curvature`; otherwise it is piecewise linear, with `kinks`
    keeps_target ℓ(z; y) depends on y as well as z
    least_target lower bound of numeric targets
    least_curvature  least curvature of ℓ* anywhere, if that is not small
    free_below   upper limit of priorities of rows whose share is at no bound
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
        """The share f′ that maximises the dual along a row, that is minimises f′ z + ½q(f′ − f)² + ℓ*(−f′). z is at the present
        w′, where the share is f, q = C u ‖x‖² > 0."""

    @abstractmethod
    def stays(self, f: float, z: float, slack: float, y: float) -> bool:
        """Whether f is at a bound and z keeps it there by more than `slack`."""

    @abstractmethod
    def free(self, f: float, y: float) -> bool:
        """Whether another step of the row is worthwhile."""

    @abstractmethod
    def violation(self, f: float, z: float, y: float) -> float:
        """How far z is from where share f would be optimal."""

    @abstractmethod
    def priority(self, f: float, z: float, norm: float, y: float) -> float:
        """Priority in a cache: the lower, the more the row may still move. norm = u ‖x‖²."""

    # -- line search ------------------------------------------------------------------------------------------------------

    def curvature(self, f: float, z: float, y: float) -> float:
        """ℓ″(z; y) of a smooth loss, a generalised one where ℓ′ has a kink; f = −ℓ′(z; y) is known."""
        return 0.0

    def kinks(self) -> int:
        """Number of kinks of a piecewise linear loss; ℓ′ rises by 1 at each."""
        return 0

    def kink(self, j: int) -> float:
        """The z of kink j."""
        return 0.0

    # -- rounding, and sums on exact grids: streamcut.foundation.rounding --------------------------------------------------------

    @property
    def at_zero(self) -> float:
        """ℓ of a row with a label and score 0."""
        return self.value(0.0, 0.0)

    @property
    def rounding(self) -> LossRounding:
        """Λ = max |f|, and how many roundings value and conjugate take."""
        return LossRounding()

    def sized(self) -> bool:
        """False if `size`, the constant and |f| are all the same, as for the hinge."""
        return True

    def size(self, f: float, y: float) -> float:
        """The sum of the absolute values in `constant`, to which its roundings are relative."""
        return abs(self.conjugate(f, y))

    def target_size(self, y: float) -> float:
        """|t|: the size of what is subtracted from a score in ℓ, with one rounding of it and one of the difference."""
        return abs(self.offset(y))

    def largest_target_size(self, scale: TargetScale) -> float:
        """An upper bound of `target_size` over all rows."""
        return scale.farthest

    def unbounded(self) -> bool:
        """Whether shares are unbounded on one side."""
        return False

    def steepest(self, seen: float, near: float, scale: TargetScale) -> float:
        """Λ within `near` of points where no |share| is above `seen`."""
        return self.rounding.slope

    def limited(self, f: float, limit: float, u: float) -> float:
        """f, clipped to the largest share of a row of weight u at the optimum, given the `limit` for weight 1."""
        return f

    @abstractmethod
    def largest_sums(self, rows: int, scale: TargetScale) -> tuple[float, float, float]:
        """(Σ u |f|, Σ u |constant|, limit): upper bounds of sums over `rows` rows with `limited` shares."""

    def prediction(self, scores: np.ndarray) -> np.ndarray:
        """For numeric targets: the predictions of scores (n,)."""
        return scores

    # -- units --------------------------------------------------------------------------------------------------------------

    def constants(self, scale: TargetScale) -> np.ndarray:
        """For numeric targets: candidate constant scores, one of which is near the best."""
        return np.append(np.linspace(scale.lowest, scale.highest, 65), 0.0)

    def middle(self, scale: TargetScale) -> float:
        """For numeric targets: the score of a target half-way between the lowest and the highest, where rows pull both ways."""
        return 0.5 * (scale.highest - scale.lowest) + scale.lowest

    # -- how rows remember shares: streamcut.losses.loss -------------------------------------------------------------------

    @abstractmethod
    def encode(self, f: float):
        """The code of a share, of type `code_type`."""

    @abstractmethod
    def decode(self, code, y: float) -> float:
        """The share of a code, in [lowest, highest]."""


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


class UnitShares(Loss):
    """Shares in [0, 1] as 16-bit codes q, f = (q / 65535)²: exact at both bounds and fine near 0."""

    __slots__ = ()
    code_type = np.uint16

    def lowest(self, y):
        return 0.0

    def highest(self, y):
        return 1.0

    def encode(self, f):
        return code_of(f)

    def decode(self, code, y):
        return share_of(code)

    def largest_sums(self, rows, scale):
        """For losses of labels whose constant is at most 1 in size."""
        return scale.weight, scale.weight, np.inf


class FloatShares(Loss):
    """Shares as 32-bit floats; codes at or beyond those nearest the bounds stand for the bounds themselves."""

    __slots__ = ()
    code_type = np.float32

    def encode(self, f):
        return np.float32(f)

    def decode(self, code, y):
        if code >= np.float32(self.highest(y)):
            return self.highest(y)
        if code <= np.float32(self.lowest(y)):
            return self.lowest(y)
        return np.float64(code)

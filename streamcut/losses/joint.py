"""The interface of a loss of all K classes together: one definition for training, `verify`, `certify` and measures.

The loss of row i is u_i ℓ(s_i; t_i) of its scores s_i = x_i W (K,) and its class t_i. It is convex and nonnegative, rises with
the scores of all classes but the target, and depends on differences of scores only. In the dual a row has shares p (K,), a point
of the simplex with p = e_t where the row adds nothing, and at any scores

    ℓ(s; t) ≥ ⟨p − e_t, s⟩ + c(p),    with equality where p − e_t is a slope of ℓ at s.

A loss is a NamedTuple of its parameters, as in streamcut.losses.loss: its methods are plain functions of numbers and arrays (K,),
compiled into kernels (streamcut.compiled.loss). The target has the share that the others leave: methods ignore p[t].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from streamcut.foundation.rounding import LossRounding
from streamcut.losses.loss import FREE_FIRST, TargetScale


class OfClasses(NamedTuple):
    """The parameters of a loss without others: the number of classes K."""

    classes: int


class JointLoss(ABC):
    """Base of all.

    smooth  ℓ is differentiable. Otherwise it is max_k (margin(k, t) + s_k − s_t), and c(p) is the share of wrong classes
    """

    __slots__ = ()
    smooth: ClassVar[bool]
    targets: ClassVar[str] = "labels"
    least_curvature: ClassVar[float] = 0.0
    free_below: ClassVar[float] = FREE_FIRST
    code_type: ClassVar[type[np.generic]] = np.float32
    classes: int

    def sign(self, y):
        return 1.0

    def sized(self):
        return False

    def unbounded(self):
        return False

    @abstractmethod
    def bounded(self) -> bool:
        """Whether the optimum has rows with one class's share at 1; others always take steps."""

    @abstractmethod
    def margin(self, k: int, t: int) -> float:
        """By how much the target has to lead class k, for no loss; 0 for k = t."""

    @abstractmethod
    def value(self, z: np.ndarray, t: int) -> float:
        """ℓ at scores z."""

    @abstractmethod
    def dual(self, z: np.ndarray, t: int, out: np.ndarray) -> None:
        """out = the shares of a slope of ℓ at scores z."""

    @abstractmethod
    def constant(self, p: np.ndarray, t: int) -> float:
        """c(p)."""

    @abstractmethod
    def step(self, p: np.ndarray, s: np.ndarray, q: float, t: int, out: np.ndarray) -> None:
        """out = the shares p′ that maximise c(p′) + ⟨p′, s⟩ − ½q‖p′ − p‖², s the scores at the present W, q = C u ‖x‖²."""

    @abstractmethod
    def slope(self, z_b: np.ndarray, z: np.ndarray, k: float, t: int) -> float:
        """The right derivative of ℓ at z_b + k(z − z_b) along that line."""

    @property
    @abstractmethod
    def rounding(self) -> LossRounding:
        """How many roundings value and constant take."""

    @property
    @abstractmethod
    def at_zero(self) -> float:
        """ℓ where all scores are 0."""

    def steepest(self, seen: float, near: float, scale: TargetScale) -> float:
        """As Loss.steepest: shares are at most 1."""
        return self.rounding.slope

    def largest_target_size(self, scale: TargetScale) -> float:
        return 0.0

    def largest_sums(self, rows: int, scale: TargetScale) -> tuple[float, float, float]:
        """As Loss.largest_sums."""
        return scale.weight, max(1.0, self.at_zero) * scale.weight, np.inf

"""Trains one-vs-rest for one C, or λ, after another, where memory holds a group of the classes at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from streamcut.bundle.bundle import BundleSize
from streamcut.bundle.penalty import L2, penalty_of
from streamcut.models.multiclass import MulticlassModel
from streamcut.oracles.ovr import OvrOracle
from streamcut.solvers.ovr import Method
from streamcut.solvers.ovr_groups import GroupsRun
from streamcut.solvers.progress import Progress
from streamcut.solvers.warm_start import Origin
from streamcut.units import part_of


class GroupsTrainer:
    """As streamcut.jobs.linear.Trainer, but each C begins anew: nothing of a group is kept when the next one comes.

    oracle_of  a fresh oracle of these classes, whose row state takes the place of the last one's; model_of: of what came out
    features   numbers of the weights of a class
    """

    def __init__(
        self,
        oracle_of: Callable[[range], OvrOracle],
        groups: Sequence[range],
        method: Method,
        cuts: BundleSize,
        features: int,
        model_of: Callable[..., MulticlassModel],
        origins: Sequence[Origin] | None,
        l1: float | str,
    ) -> None:
        self._oracle_of, self._groups, self._method, self._cuts = oracle_of, groups, method, cuts
        self._features, self._model_of, self._origins, self._l1 = features, model_of, origins, l1
        self._steepest: tuple[float, float] | None = None

    def train(self, C: float, progress: Progress, *, l1: float | str | None = None, keep: bool = False) -> MulticlassModel:
        """As that of Trainer."""
        penalty, found, passes = self._penalty(C, self._l1 if l1 is None else l1)

        def oracle_of(group: range) -> OvrOracle:
            oracle = self._oracle_of(group)
            oracle.C, oracle.penalty = C, penalty
            return oracle

        run = GroupsRun(self._groups, oracle_of, self._method, self._cuts, C, self._features, progress, self._origins, passes)
        solution = run.solve(keep=keep)
        model = self._model_of(
            solution.W, solution.lines, solution.witnesses, solution.history, C, c_bar=C * solution.total_weight, l1=penalty.l1
        )
        return replace(model, parameters={**model.parameters, **found})

    def _penalty(self, C: float, l1: float | str) -> tuple[L2, dict[str, float], int]:
        """The penalty, what was found of it (λ_max where `l1` is a part of that), and the passes that it took, one a group."""
        part, passes = part_of(l1), 0
        if part is None:
            return penalty_of(float(l1)), {}, 0
        if self._steepest is None:
            steepest, total_weight = 0.0, 0.0
            for group in self._groups:
                oracle = self._oracle_of(group)
                steepest, total_weight = max(steepest, oracle.steepest_at_zero()), oracle.total_weight
            self._steepest, passes = (steepest, total_weight), len(self._groups)
        most = C * self._steepest[1] * self._steepest[0]
        return penalty_of(part * most), {"l1_max": most}, passes

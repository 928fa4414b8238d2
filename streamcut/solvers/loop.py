"""The loop around the iterations of solvers that keep a bundle: resume, record, checkpoint, stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import StopReason
from streamcut.oracles.decomposable import DecomposableOracle
from streamcut.solvers.progress import Progress, Solution, StoppingRule
from streamcut.solvers.state import BundleState

Begin = Callable[[Any, int, StoppingRule], BundleState]


def begun(
    oracle: DecomposableOracle, progress: Progress, max_cuts: int, begin: Begin = BundleState.at_zero
) -> tuple[BundleState, StoppingRule]:
    """The state after the pass of `begin`, by default at w = 0, or that of the checkpoint, and the rule in the oracle's unit.

    Raises Interrupted during that pass.
    """
    checkpoint = progress.resume(oracle)
    s = begin(oracle, max_cuts, progress.rule) if checkpoint is None else BundleState.restored(checkpoint, oracle, max_cuts)
    return s, progress.measure_for(oracle)


def iterated(
    s: BundleState, oracle: DecomposableOracle, progress: Progress, rule: StoppingRule, iterate: Callable[[], None]
) -> Solution:
    """Call `iterate`, which moves `s`, until `progress` stops it."""
    try:
        while (reason := progress.note(*s.claim, s.k, len(s.bundle), oracle, s.values)) is None:
            progress.keep(s, oracle)
            iterate()
    except Interrupted:
        reason = StopReason.INTERRUPTED
    if reason is not StopReason.CONVERGED:
        progress.save(s, oracle)
    elif progress.rule.max_passes is None or oracle.passes + 2 <= progress.rule.max_passes:
        with suppress(Interrupted):
            s.centre(oracle, rule)
    return replace(s.solution(reason, progress.history, oracle, rule), state=s)

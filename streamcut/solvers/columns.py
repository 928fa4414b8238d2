"""Accelerated dual ascent for columns: problems on the same rows, all of them in the same passes over the data.

Problem   min F_a(w) = ½‖w‖² + l1_a‖w‖₁ + C_a Σ u_i ℓ(⟨w, x_i⟩; y_ia) for each column a (streamcut.losses.pointwise).
Given     the oracle, a stopping rule.
Returns   the best point of each column, F_a there, and a lower bound on min F_a.
Stops     a column, when its own gap is small enough; it leaves then. Where memory does not suffice for all columns, the next one
          takes its place. Time limits hold for all, pass limits for each column.

Steps as in streamcut.solvers.columns_state: with a σ that falls from pass to pass, a pass moves the share f of every pair to the
maximum of the dual for σC along it, at a point y that follows; y then moves towards the weights w(f) = C U of the shares.
Two cuts bound F: that of the newest shares, and G, all older ones mixed by the master problem. Neither U nor G depends on C.

    y = 0, all shares 0, σ = σ₀
    repeat for all columns that have not converged
        one pass: z of y; steps from y for the pairs that are not at rest; sweeps over cached rows: r, and f
        k = argmin_{k ≥ 0} F(w_b + k(y − w_b));   w_b ← w_b + k(y − w_b)
        p, q = the master problem; its value is the bound;   G ← pG + qU
        y ← r + (1 − e^−σ)(C U − r);   σ ← 2σ/(2 + σ)

A plain pass has σ = 1 and ends at y = C U. The last one before accelerated passes ends at y = C G, the mixture, whose bound newer
shares take passes to reach; with a smooth loss, or if passes are stuck, at y = w_b: nothing bounds the shares of a smooth loss,
and steps for σC from C U overshoot more with every pass. Each column has a
Guard (streamcut.solvers.columns_state): the kind of its passes. Where its first σ is below 1, its plain passes solve for cached
rows at once, if features are few (streamcut.oracles.columns_cache), and the resulting weights are scored next. With an l1 passes
are plain at first: steps exploit that only nonzero features bend the dual (streamcut.compiled.columns.bent_along).

A joint loss of K classes has a group of K columns (streamcut.compiled.groups): its products, slopes and thresholds are sums over
them. Passes of one with kinks are accelerated (oracle.shares_come_from_each_other), with an l1 on one lane those at first.

Plain coordinate steps move the share of a row by (1 − z)/(C u ‖x‖²) at most: with a large C, or long rows, a share takes tens of
passes to reach its value. The steps of accelerated coordinate descent (APPROX, Fercoq & Richtárik 2015, algorithm 2) grow, at a
point y that moves less and less. In terms of weights, with a decreasing σ, a pass is

    for every row: its share f to the maximum of the dual for σC along it, at y; y follows, by σC u Δf a
    y ← y + (1 − e^−σ)(w(f) − y);   σ ← 2σ/(2 + σ)

where w(f) are the weights of the shares. (The original moves y towards w(f) at every step, not once a pass.) Sweeps
over cached rows, a random sample of the free ones, continue the steps of their pass. y is close to a mean of all w(f), and a
good primal point; the shares are a good dual point long before their means are. No bound depends on any of this.

Neither kind is always faster: accelerated passes crawl on separable rows, plain ones with many features and a large C. So a guard
switches between them. The dual of smooth losses is strongly concave: plain passes converge linearly, accelerated ones, whose σ
falls, do not. So their passes are plain at first, and stay so where the first one leaves a tenth of the gap (rows hardly see each
other) and any two at most 0.4 of it. If C is so small that σ starts at 1, all passes are plain. Plain passes solve for cached
rows at once, if features are few (streamcut.oracles.columns_cache); the resulting weights are scored next: with smooth losses,
and such a C, once passes were slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamcut.bundle.intercept import EVERYWHERE
from streamcut.compiled import columns_vectors as vectors
from streamcut.compiled.vectors import dot
from streamcut.errors import UsageError
from streamcut.execution.runner import Interrupted
from streamcut.foundation.rounding import objective, plane_doubt
from streamcut.models.certificate import Cut, StopReason
from streamcut.oracles.columns import ColumnsOracle, Start
from streamcut.oracles.columns_passes import ColumnSums
from streamcut.solvers.columns_bounds import add_shares, centre, search, take_bounds, to_the_scored
from streamcut.solvers.columns_state import Answer, Guard, Line, State
from streamcut.solvers.progress import Iteration, Progress, StoppingRule, Values
from streamcut.solvers.warm_start import Origin

ENOUGH = 0.0005  # sweeps over cached rows end when one gains no more than this part of the gap
_FASTER = 2.0  # the largest speed-up of a free intercept's moves; 4 takes as many passes
# By whether the loss is smooth: a problem crawls when, of so many passes at least, the last ones leave so much of the gap. Planes
# end smooth losses in a few passes; with kinks they need tens, so a run of each kind comes first.
_CRAWLS = {True: (12, 6, 0.95), False: (24, 16, 0.9)}
STILL = (StopReason.STALLED, StopReason.SCALE)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsSolution:
    """The answers for the columns, in order, and all iterations, whose primal and bound are sums over columns."""

    answers: list[Answer]
    history: list[Iteration]
    state: State


def solve(
    oracle: ColumnsOracle, progress: Progress, origins: Sequence[Origin] | None = None, *, yields: bool = False
) -> ColumnsSolution:  # fmt: skip
    """Run all columns to the stopping rule of `progress`: one pass an iteration.

    Columns start from `origins`, by default from zero. `yields`: a single one that crawls ends as at a standstill, so that
    another method can go on. Raises Interrupted before there is a solution.
    """
    asked = progress.rule
    progress.rule = replace(asked, tol=None, tol_relative=None)  # convergence is checked here, for each column
    if oracle.at_once < len(oracle.columns):  # a limit for each column
        progress.rule = replace(progress.rule, max_passes=None)
    saved, reason = progress.resume(oracle), StopReason.INTERRUPTED
    s = State.at_zero(oracle, 0) if saved is None else State.restored(saved, oracle)
    try:
        if saved is None:
            s = _begun(oracle, origins)
        reason = _trained(s, oracle, progress, asked, origins, yields=yields)
    except Interrupted:
        if not s.lines and not s.answers:
            raise
        _keep(s, oracle, [a for a, line in enumerate(s.lines) if line.trace])  # others have had no pass
    if reason is not StopReason.CONVERGED:
        progress.save(s, oracle)
    return ColumnsSolution(_answers(s, oracle, reason, len(progress.history) - 1), progress.history, s)


def _trained(
    s: State, oracle: ColumnsOracle, progress: Progress, asked: StoppingRule, origins: Sequence[Origin] | None, *, yields: bool
) -> StopReason:  # fmt: skip
    """Run all columns, those that wait in the slots of those that have left; returns why it ended."""
    rule = replace(asked, unit=oracle.unit, equal=oracle.equal)
    while s.lines or _waiting(s, oracle):  # nothing is left of a checkpoint of the end
        reason = _note(s, oracle, progress)
        _leave(s, oracle, rule, progress)
        waiting = _waiting(s, oracle)
        if yields and reason is None and s.lines:
            trace, c_bar = s.lines[0].trace, float(oracle.costs[0] * oracle.totals[0])
            crawls = _crawls(trace, rule.allowed_gap(trace[-1][0], c_bar), smooth=oracle.risk.loss.smooth)
            reason = StopReason.SCALE if crawls else None
        if waiting and reason in STILL:  # those in training; others have not begun
            _give_up(s, oracle, range(len(s.lines)), reason)
        elif reason is not None and (s.lines or waiting):
            return reason
        if not (s.lines or waiting):
            break
        progress.keep(s, oracle)
        joined = _join(s, oracle, waiting, origins)
        _iterate(s, oracle, stuck=progress.still > 0)
        _expect_below(s, oracle, joined)
    reasons = [answer.reason for answer in s.answers.values()]
    return next((reason for reason in reasons if reason is not StopReason.CONVERGED), StopReason.CONVERGED)


def _crawls(trace: list[tuple[float, float]], allowed: float, *, smooth: bool) -> bool:
    """Whether the last passes have left nearly all of the gap, and at the pace of the latter half of all passes it takes as many
    again until the gap is as `allowed`: another method starts with few cuts."""
    gaps = [primal - bound for primal, bound in trace]
    (least, window, left), n, now = _CRAWLS[smooth], len(gaps), gaps[-1]
    if n < least or now <= left * gaps[-window - 1]:
        return False
    half = n // 2
    return allowed <= 0.0 or now * (now / gaps[n - half - 1]) ** (n / half) > allowed


def _waiting(s: State, oracle: ColumnsOracle) -> list[int]:
    """The columns that have not begun."""
    begun = {*s.answers, *(oracle.active.tolist() if s.lines else ())}
    return [column for column in range(len(oracle.columns)) if column not in begun]


def _give_up(s: State, oracle: ColumnsOracle, active: Iterable[int], reason: StopReason) -> None:
    """These of the active columns leave in their current state."""
    for a in (gone := set(active)):
        s.answers[int(oracle.active[a])] = _answer(s, a, oracle, reason)
    _keep(s, oracle, [a for a in range(len(s.lines)) if a not in gone])


def _keep(s: State, oracle: ColumnsOracle, chosen: Sequence[int]) -> None:
    """Only these of the active columns stay in training."""
    if len(chosen) < len(s.lines):
        stay = np.array(chosen, np.int64)
        oracle.active = oracle.active[stay]
        s.keep(stay)


def _answers(s: State, oracle: ColumnsOracle, reason: StopReason, last: int) -> list[Answer]:
    """The answers of all columns after iteration `last`; columns that were never in training are at w = 0."""
    answers = dict(s.answers)
    for a, column in enumerate(oracle.active.tolist() if s.lines else []):
        answers[column] = _answer(s, a, oracle, reason)
    if waiting := _waiting(s, oracle):
        oracle.active = np.array(waiting)
        zero, costs = np.zeros(oracle.size), oracle.costs
        for a, (column, loss) in enumerate(zip(waiting, oracle.losses_at_zero().tolist(), strict=True)):
            F, c_bar = objective(0.0, len(zero), float(costs[a]), loss), float(costs[a] * oracle.totals[a])
            nothing = Cut.none(oracle.costly.stop * oracle.risk.width)
            answers[column] = Answer(zero, F, 0.0, 0.0, nothing, c_bar, reason, last, ((F, 0.0),))
    return [answers[column] for column in range(len(oracle.columns))]


def _begun(oracle: ColumnsOracle, origins: Sequence[Origin] | None) -> State:
    """The state after the first pass over the data, which learns the weight of rows, too."""
    oracle.enter(range(min(oracle.at_once, len(oracle.columns))))
    A = len(oracle.active)
    s = State.at_zero(oracle, A)
    first = _placed(s, oracle, A, origins)
    W = s.y.copy()
    for a, origin in first.items():
        s.of(W, a)[:] = 0.0 if origin is None else origin.w.reshape(-1, oracle.risk.width)
    sums = oracle.ascend(Start(W, s.y, np.ones(A), ENOUGH * oracle.costs))
    _begin(s, oracle, first)
    _after(s, oracle, sums, W, stuck=np.ones(A, np.bool_))
    _expect_below(s, oracle, first)
    return s


def _join(s: State, oracle: ColumnsOracle, waiting: list[int], origins: Sequence[Origin] | None) -> dict[int, Origin | None]:
    """Put columns that wait into free slots, without shares; returns their origins by place among the columns in training."""
    new = waiting[: oracle.at_once - len(s.lines)]
    if not new:
        return {}
    oracle.join(new)
    s.join(State.at_zero(oracle, len(new)))
    first = _placed(s, oracle, len(new), origins)
    _begin(s, oracle, first)
    return first


def _placed(s: State, oracle: ColumnsOracle, count: int, origins: Sequence[Origin] | None) -> dict[int, Origin | None]:
    """The origins of the last `count` columns, by place; intercepts start there, free ones without one at the best constant."""
    A = len(oracle.active)
    first = {a: None if origins is None else origins[int(oracle.active[a])] for a in range(A - count, A)}
    for a, origin in first.items():
        if oracle.free:
            s.y[-1, a] = oracle.constant()[-1] if origin is None else origin.w[-1]
    return first


def _begin(s: State, oracle: ColumnsOracle, first: dict[int, Origin | None]) -> None:
    """The lines of columns that begin, at w = 0 or with the proof of their origin: then G is its cut."""
    table = oracle.costs.tolist(), oracle.losses_at_zero().tolist(), oracle.first_sigmas().tolist(), oracle.totals.tolist()
    l1s = [0.0] * len(oracle.active) if oracle.l1s is None else oracle.l1s.tolist()
    for a, origin in first.items():
        C, loss, sigma, M = (values[a] for values in table)
        accelerated = oracle.shares_come_from_each_other
        # with an l1 steps are as long as thresholds allow, so acceleration waits until they are slow, or gives way; so it
        # waits with smooth losses, and where rows of several lanes, which do not see each other's steps, are solved for at once
        smooth = oracle.risk.loss.smooth and oracle.risk.group is None and l1s[a] == 0.0
        plain = not accelerated and (sigma == 1.0 or l1s[a] > 0.0 or smooth or (oracle.solves and oracle.lanes > 1))
        steady = accelerated and not (l1s[a] > 0.0 and oracle.lanes == 1)
        guard = Guard(sigma, plain, smooth=smooth, kinks=not oracle.risk.loss.smooth, steady=steady)
        within = EVERYWHERE if oracle.free else None
        s.lines.append(Line(guard, 1.0, objective(0.0, oracle.size, C, loss), within=within))
        if origin is not None:
            s.lines[a].solved, s.lines[a].from_model = origin.w, True
            if origin.cut is not None:
                s.of(s.G[oracle.costly], a)[:] = (origin.cut.a * -M).reshape(-1, oracle.risk.width)
                s.offsets[a] = origin.cut.b * M
                s.lines[a].error = origin.cut.error
        elif oracle.free:
            s.lines[a].solved = np.zeros(oracle.dimension)


def _expect_below(s: State, oracle: ColumnsOracle, first: dict[int, Origin | None]) -> None:
    """Raise UsageError for a cut of an origin that is above the loss at the best point. With free intercepts it is valid on their
    intervals."""
    if oracle.free:
        return
    for a, origin in first.items():
        if origin is None or origin.cut is None:
            continue
        line, M = s.lines[a], float(oracle.totals[a])
        w, (cut, b, error) = s.of(s.best, a).reshape(-1), (origin.cut.a, origin.cut.b, origin.cut.error)
        square = dot(w, w)
        if dot(cut, w) + b - plane_doubt(dot(cut, cut), square, b, error, len(w)) > (line.F / oracle.costs[a]) / M:
            raise UsageError("warm_start: the model's cutting plane does not hold on this data; start without the model")


def _iterate(s: State, oracle: ColumnsOracle, *, stuck: bool) -> None:
    """One pass of all active columns, and its updates.

    Of columns in their first pass no gap is known yet: sweeps end when one gains little compared with the loss of a single row.
    """
    l1, W = oracle.l1s, s.y
    if l1 is not None or any(line.solved is not None for line in s.lines):
        W = s.y.copy()
    if l1 is not None:
        vectors.shrink(s.y[oracle.costly], s.each(l1), W[oracle.costly])
    for a, line in enumerate(s.lines):
        if line.solved is not None:
            s.of(W, a)[:] = line.solved.reshape(-1, oracle.risk.width)
    first = np.array([not line.trace for line in s.lines])
    sigma = np.array([line.sigma for line in s.lines])
    enough = ENOUGH * np.where(first, oracle.costs, sigma * np.array([line.gap for line in s.lines]))
    at_once = np.array([line.guard.solves for line in s.lines]) & ~first
    sums = oracle.ascend(Start(W, s.y, sigma, enough, at_once, oracle.costs * s.U[-1] if oracle.free else None))
    _after(s, oracle, sums, W, stuck=first | stuck)


def _after(s: State, oracle: ColumnsOracle, sums: ColumnSums, W: np.ndarray, *, stuck: np.ndarray) -> None:
    """Updates after a pass that scored W: line search, master problem, and the start of the next pass."""
    A, C, l1 = len(s.lines), oracle.costs, oracle.l1s
    s.scored = None if l1 is None else W
    newest = add_shares(s, oracle, sums)
    products, costly = np.empty((7, A * s.width)), oracle.costly
    U, G = newest.U[costly], s.G[costly]
    vectors.products(U, G, s.best[costly], W[costly], oracle.magnitudes[costly], np.empty_like(products), products)
    uu, gu, gg, _, bd, dd, _ = s.sums(products)
    search(s, oracle, W, bd, dd)
    take_bounds(s, oracle, newest, np.stack([gg, gu, uu]))
    e = np.empty(A)
    for a, line in enumerate(s.lines):
        if line.guard.hands_over(line.gap) or line.guard.plain or stuck[a]:
            e[a], line.sigma = 1.0, 1.0 if line.guard.plain else line.guard.first
        else:
            e[a], line.sigma = -np.expm1(-line.sigma), 2.0 * line.sigma / (2.0 + line.sigma)
        line.solved = sums.solved.get(a) if line.guard.plain and line.k > 0.0 else None
    vectors.towards(s.y, sums.w, 1.0, s.U, s.each(C), s.each(e))
    for a, line in enumerate(s.lines):
        if e[a] == 1.0 and not line.guard.plain and line.trace:
            y, best = s.of(s.y, a), s.of(s.best, a)
            if oracle.risk.loss.smooth or stuck[a]:
                y[:] = best if l1 is None else best + l1[a] * np.sign(best)
            else:
                y[:] = C[a] * s.of(s.G, a)
    if oracle.free:
        assert sums.w is not None
        s.y[-1] = sums.w[-1] + _moved(s.lines, C * s.U[-1], e)


def _moved(lines: list[Line], pulls: np.ndarray, e: np.ndarray) -> np.ndarray:
    """How far free intercepts move beyond their steps: e times the remaining pull of the shares, a method of multipliers, or
    more where a secant through this pull and the previous one suggests it, but at most _FASTER times the previous factor."""
    for line, pull, least in zip(lines, pulls.tolist(), e.tolist(), strict=True):
        before, line.pull = line.pull, pull
        fell = before - pull
        secant = line.times * before / fell if fell * before > 0.0 else np.inf
        line.times = max(least, min(secant, _FASTER * line.times)) if before else least
    return pulls * [line.times for line in lines]


def _answer(s: State, a: int, oracle: ColumnsOracle, reason: StopReason) -> Answer:
    """The answer of column a, with the bound recomputed from its proof."""
    line, proof = s.lines[a], s.proof(a, float(oracle.totals[a]))
    c_bar, l1 = float(oracle.costs[a] * oracle.totals[a]), 0.0 if oracle.l1s is None else float(oracle.l1s[a])
    bound = min(line.bound, proof.bound(c_bar, l1))
    w, F, raised = s.of(s.best, a).flatten(), line.F, line.raised
    if line.held is not None and line.held[1] < F:
        w, F, raised = line.held
    return Answer(w, F, raised, bound, proof, c_bar, reason, line.began, tuple(line.trace))


def _leave(s: State, oracle: ColumnsOracle, rule: StoppingRule, progress: Progress) -> None:
    """Store the answers of columns that have converged and remove them; where columns wait, of those at their limit, too."""
    limitless, stay = replace(rule, target=None, max_passes=None, max_time=None), []
    c_bars = (oracle.costs * oracle.totals).tolist()

    def close(a: int, F: float, bound: float) -> bool:
        return limitless.reason(F, bound, c_bars[a], 0, 0.0) is StopReason.CONVERGED

    done = [a for a, line in enumerate(s.lines) if close(a, line.best, line.bound)]
    if done and s.scored is not None:
        to_the_scored(s, oracle, done, close)
    if done and oracle.free and len(oracle.columns) == 1:
        centre(s, oracle, rule, close)
    for a, column in enumerate(oracle.active.tolist()):
        if a in done:
            answer = _answer(s, a, oracle, StopReason.CONVERGED)
            if close(a, answer.primal, answer.bound):
                s.answers[column] = answer
                continue
        stay.append(a)
    _keep(s, oracle, stay)
    if rule.max_passes is not None and oracle.at_once < len(oracle.columns):
        done = [oracle.passes - progress.history[line.began].passes + 1 >= rule.max_passes for line in s.lines]
        _give_up(s, oracle, np.flatnonzero(done).tolist(), StopReason.MAX_PASSES)


def _note(s: State, oracle: ColumnsOracle, progress: Progress) -> StopReason | None:
    """Record an iteration of all columns; returns why to stop, or None."""
    primal = sum(line.best for line in s.lines) + sum(answer.primal for answer in s.answers.values())
    bound = sum(line.bound for line in s.lines) + sum(answer.bound for answer in s.answers.values())
    steps = float(np.mean([line.k for line in s.lines] or [0.0]))
    values = Values.of_all((line.values for line in s.lines), stage=float(len(s.answers)))
    before = len(progress.history)
    reason = progress.note(primal, bound, steps, 2 * len(s.lines), oracle, values, oracle.named)
    if len(progress.history) > before:
        for line in s.lines:
            line.began = line.began if line.trace else before
            line.trace.append((line.best, line.bound))
    return reason

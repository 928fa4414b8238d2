"""The elastic net: certificates against slow solvers, its parts against slow versions, and what must never change the answer."""

from fractions import Fraction

import numpy as np
import pytest
from reference import elastic_net as slow

from streamcut.bundle.penalty import ElasticNet
from streamcut.bundle.verified_master import solve_penalised
from streamcut.foundation.rounding import CutError

# --- parts of λmax -------------------------------------------------------------------------------------------------------------


# --- its parts ------------------------------------------------------------------------------------------------------------------


def test_the_bound_is_below_the_exact_one():
    rng = np.random.default_rng(0)
    for _ in range(300):
        d, c_bar = int(rng.integers(1, 9)), float(10.0 ** rng.uniform(-6, 8))
        a = rng.standard_normal(d) * 10.0 ** rng.uniform(-8, 8, d)
        l1 = float(c_bar * abs(rng.choice(a)) * rng.choice([1.0, 1.0 + 1e-15, 1e-3, 0.3]))
        b = float(rng.standard_normal() * 10.0 ** rng.uniform(-3, 12))
        computed, _ = ElasticNet(l1).bound(c_bar, a, b, CutError(0.0, 0.0))
        C, L = Fraction(c_bar), Fraction(l1)
        w = [max(abs(C * Fraction(x)) - L, Fraction(0)) for x in a.tolist()]
        assert Fraction(computed) <= C * Fraction(b) - sum(x * x for x in w) / 2


def test_the_objective_is_above_the_exact_one():
    rng = np.random.default_rng(1)
    for _ in range(300):
        w = rng.standard_normal(int(rng.integers(1, 30))) * 10.0 ** rng.uniform(-8, 8)
        l1, C, loss = (float(10.0 ** rng.uniform(-6, 6)) for _ in range(3))
        exact = [Fraction(x) for x in w.tolist()]
        least = sum(x * x for x in exact) / 2 + Fraction(l1) * sum(map(abs, exact)) + Fraction(C) * Fraction(loss)
        assert least <= Fraction(ElasticNet(l1).objective(w, C, loss)) <= least * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("seed", range(12))
def test_the_master_problem_is_solved(seed):
    rng = np.random.default_rng(seed)
    T, d, total = int(rng.integers(2, 12)), int(rng.integers(1, 15)), float(10.0 ** rng.uniform(-1, 2))
    rows = np.vstack([np.zeros(d), rng.standard_normal((T, d)) / total])
    b, l1, beta = np.append(0.0, rng.random(T) / total), float(rng.choice([0.1, 0.5, 2.0])), np.zeros(T + 1)
    beta[0] = total

    def value(beta):
        w = slow.shrunk(-beta @ rows, l1)
        return 0.5 * w @ w - b @ beta, -rows @ w - b

    gap = solve_penalised(rows, rows @ rows.T, b, total, beta, 1e-10, l1)
    found, slope = value(beta)
    assert gap <= 1e-10
    assert beta @ slope - total * slope.min() <= 1e-9  # what is left to gain, by convexity
    assert found <= min(value(total * point)[0] for point in [*np.eye(T + 1), *rng.dirichlet(np.ones(T + 1), 100)]) + 1e-9
    assert beta.min() >= 0.0
    assert beta.sum() == pytest.approx(total, rel=1e-14)

"""When sweeps over cached rows end: by what they bring for their work next to the pass, both counted."""

import numpy as np

from streamcut.oracles.dual.worth import Worth


def sweeps_of(worth, rises, work):
    """How many of these sweeps are made."""
    for number, rise in enumerate(rises, 1):
        if not worth.goes_on(rise, work):
            return number
    return len(rises)


def test_sweeps_end_where_one_brings_less_than_half_of_the_mean_since_the_pass_began():
    # 150 units for the pass and 15 for each sweep: after the fourth half of the mean is 0.5 · 18.75 / 210 · 15 = 0.67
    rises = [4.0, 2.5, 1.25, 1.0, 0.7, 0.3]
    assert sweeps_of(Worth.after(100, 10.0, 0.0), rises, 15) == 6
    assert sweeps_of(Worth.after(100, 20.0, 0.0), rises, 15) == 4
    assert sweeps_of(Worth.after(100, 20.0, 0.0, part=0.0), rises, 15) == 6
    assert sweeps_of(Worth.after(100, 10.0, 1.25), rises, 15) == 3


def test_a_sweep_of_few_rows_may_bring_little():
    assert sweeps_of(Worth.after(100, 20.0, 0.0), [1.0] * 9, 100) == 1
    assert sweeps_of(Worth.after(100, 20.0, 0.0), [1.0] * 9, 2) == 9


def test_each_of_several_problems_ends_by_itself():
    worth = Worth.after(100, np.array([10.0, -3.0]), np.zeros(2))
    assert worth.goes_on(np.array([0.5, 0.5]), 15).tolist() == [True, True]
    assert worth.goes_on(np.array([0.2, 0.2]), 15).tolist() == [False, True]

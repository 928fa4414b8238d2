"""Structured tasks of one's own: the protocol, its certificate, and what is refused."""

from streamcut.solvers import stabilised


def test_a_slope_is_followed_to_where_it_is_nothing():
    assert stabilised.guessed_step(-2.0, 2.0, 0.5) == 0.25
    assert stabilised.guessed_step(-4.0, -2.0, 0.25) == 0.5
    assert stabilised.guessed_step(-4.0, -3.0, 0.5) == 1.0
    assert stabilised.guessed_step(1.0, 2.0, 0.5) == 0.0
    assert stabilised.guessed_step(-1.0, -1.0, 0.5) == 1.0

"""What the kernels of columns ask of a row in each problem: a column by itself, or a group of columns with a joint loss.

Kernels call these as methods of columns.group (streamcut.compiled.loss). A problem `a` of Alone is column a.
"""

from __future__ import annotations

from typing import NamedTuple

from streamcut.compiled.columns import changed_pairs, rest_of_pairs, step_pairs, target_of_pair
from streamcut.compiled.columns_cache import offer_pairs, sweep_pairs, write_pairs
from streamcut.compiled.groups import changed_groups, offer_groups, rest_of_groups, step_groups, sweep_groups, write_groups


class _Problems(NamedTuple):
    """`width` columns are a problem."""

    width: int = 1

    def single(self):
        """Whether there is one column, in the only place."""
        return False

    @staticmethod
    def vectors(W):
        """The vectors (D, A) of columns as kernels take them, a view."""
        return W


class Alone(_Problems):
    """Columns are problems by themselves."""

    __slots__ = ()
    rest_of_row, step_of_row, changes_of_row = rest_of_pairs, step_pairs, changed_pairs
    offer_row, sweep_row, write_row = offer_pairs, sweep_pairs, write_pairs

    def problem_of(self, a):
        return a

    def z_at_zero(self, loss, y, columns, a):
        """z of column a where its score is 0."""
        return 0.0 - loss.offset(target_of_pair(columns.positive, y, a))

    def slope_of(self, loss, y, columns, a, z_b, z, k):
        """The right derivative of the loss of problem a along z_b + k(z − z_b)."""
        target, before = target_of_pair(columns.positive, y, a), z_b[columns.places[a]]
        delta = z[columns.places[a]] - before
        here = before + k * delta
        f = loss.dual(here, target)
        if delta < 0.0:
            for corner in range(loss.kinks()):
                if here == loss.kink(corner):
                    f += 1.0
        return -f * delta

    def step_along(self, loss, y, columns, a, z_b, z, k):
        """z_b += k (z − z_b) of problem a. Returns (the loss there, the size of the share there if shares are unbounded)."""
        at, target = columns.places[a], target_of_pair(columns.positive, y, a)
        here = z_b[at] + k * (z[at] - z_b[at])
        z_b[at] = here
        value = loss.value(here, target)
        return value, abs(loss.dual(here, target)) if loss.unbounded() and value != 0.0 else 0.0


class Single(Alone):
    """One column: compiled without lists and places of columns, for vectors (D,)."""

    __slots__ = ()

    def single(self):
        return True

    @staticmethod
    def vectors(W):
        return W.reshape(-1)


class Together(_Problems):
    """Groups of `width` columns are problems; the methods are those of Alone."""

    __slots__ = ()
    rest_of_row, step_of_row, changes_of_row = rest_of_groups, step_groups, changed_groups
    offer_row, sweep_row, write_row = offer_groups, sweep_groups, write_groups

    def problem_of(self, a):
        return a // self.width

    def z_at_zero(self, loss, y, columns, a):
        return 0.0

    def slope_of(self, loss, y, columns, a, z_b, z, k):
        at = columns.places[a * self.width]
        return loss.slope(z_b[at : at + self.width], z[at : at + self.width], k, y)

    def step_along(self, loss, y, columns, a, z_b, z, k):
        first = columns.places[a * self.width]
        for at in range(first, first + self.width):
            z_b[at] += k * (z[at] - z_b[at])
        return loss.value(z_b[first : first + self.width], y), 0.0

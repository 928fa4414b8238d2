"""What the kernels of columns ask of a row in each problem: a column by itself, or a group of columns with a joint loss.

Kernels call these as methods of columns.group (streamcut.compiled.loss). A problem `a` of Alone is column a.
"""

from __future__ import annotations

from typing import NamedTuple

from streamcut.compiled.columns import changed_pairs, rest_of_pairs, step_pairs, target_of_pair
from streamcut.compiled.columns_cache import offer_pairs, sweep_pairs, write_pairs
from streamcut.compiled.groups import changed_groups, offer_groups, rest_of_groups, step_groups, sweep_groups, write_groups


class Alone(NamedTuple):
    """Columns are problems by themselves."""

    width: int = 1

    def single(self):
        """Whether there is one column, in the only place."""
        return False

    @staticmethod
    def vectors(W):
        """The vectors (D, A) of columns as kernels take them, a view."""
        return W

    def problem_of(self, a):
        return a

    def rest_of_row(self, loss, i, q, rows, columns, pairs, halves, at_scores, grids, room):
        """(number of columns listed, key, sum of z) of row i with scores room.scores."""
        return rest_of_pairs(loss, i, q, rows, columns, pairs, halves, at_scores, grids, room)

    def step_of_row(self, loss, i, listed, shares, count, weight, square, key, rows, columns, codes, grids, sums, room):
        """A step of the listed columns of row i, at room.scores. Returns (moved, still listed, key)."""
        return step_pairs(loss, i, listed, shares, count, weight, square, key, rows, columns, codes, grids, sums, room)

    def changes_of_row(self, loss, i, weight, rows, columns, codes, halves, grids, b, room):
        """Note the changes of row i between both halves of its codes; returns their number."""
        return changed_pairs(loss, i, weight, rows, columns, codes, halves, grids, b, room)

    def offer_row(self, loss, i, rows, columns, pairs, half, share, listed):
        """Fill the shares and the listed columns of a cached row; returns their number."""
        return offer_pairs(loss, i, rows, columns, pairs, half, share, listed)

    def sweep_row(self, loss, i, own, count, cached, columns, slack, grids, w, sums, room):
        """Steps of cached row i in its `count` listed columns `own`, at room.scores. Returns (still listed, moved)."""
        return sweep_pairs(loss, i, own, count, cached, columns, slack, grids, w, sums, room)

    def write_row(self, loss, i, cached, columns, codes, grids, b, room):
        """Write the codes of cached row i; returns the number of changes."""
        return write_pairs(loss, i, cached, columns, codes, grids, b, room)

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

    def single(self):
        return True

    @staticmethod
    def vectors(W):
        return W.reshape(-1)


class Together(NamedTuple):
    """Groups of `width` columns are problems; the methods are those of Alone."""

    width: int

    def single(self):
        return False

    @staticmethod
    def vectors(W):
        return W

    def problem_of(self, a):
        return a // self.width

    def rest_of_row(self, loss, i, q, rows, columns, pairs, halves, at_scores, grids, room):
        return rest_of_groups(loss, i, q, rows, columns, pairs, halves, at_scores, room)

    def step_of_row(self, loss, i, listed, shares, count, weight, square, key, rows, columns, codes, grids, sums, room):
        return step_groups(loss, i, listed, shares, count, weight, square, key, rows, columns, codes, sums, room)

    def changes_of_row(self, loss, i, weight, rows, columns, codes, halves, grids, b, room):
        return changed_groups(loss, i, weight, rows, columns, codes, halves, grids, b, room)

    def offer_row(self, loss, i, rows, columns, pairs, half, share, listed):
        return offer_groups(loss, i, rows, columns, pairs, half, share, listed)

    def sweep_row(self, loss, i, own, count, cached, columns, slack, grids, w, sums, room):
        return sweep_groups(loss, i, own, count, cached, columns, slack, w, sums, room)

    def write_row(self, loss, i, cached, columns, codes, grids, b, room):
        return write_groups(loss, i, cached, columns, codes, grids, b, room)

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

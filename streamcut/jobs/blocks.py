"""How many blocks of rows bundle-dca has (streamcut.bundle.blocks): as many as their share of the time and of the memory allows.

More blocks take fewer passes, most of all with few features: a9a, C = 10: 28 with one block, 17 with 64. They cost products of
all pairs of cuts and a larger master problem, which together may take a fifth of what a pass takes in memory, and a dense vector
a cut. Where data is small and easy, a pass more is cheaper than what they add to each: there are MANY at most (a9a, C = 1: two
thirds of the time). A few blocks bring nothing where features are many (text of 50,000: 17 passes instead of 16), so there is one
then.
"""

from __future__ import annotations

from streamcut.config import TrainOptions
from streamcut.execution.lanes import Lanes
from streamcut.execution.plan import Blocked
from streamcut.io.manifest import Statistics
from streamcut.jobs.linear import most_cuts
from streamcut.oracles.dual.blocks import PIECE, Blocks

_MOST = 64
_BYTES = 128 << 20  # of the cuts and sums of all blocks
_SUMS = 12  # dense vectors of a block beside its cuts: sums of two passes on two grids, and the cuts made of them
MANY = 16  # blocks, from which on few cuts of each are enough; fewer bring nothing where features are many
CUTS = 8  # of each of many blocks
_CUTS_OF_ALL = 512
_ROWS = 2 * PIECE  # that a block has at least
_ENTRY, _PRODUCT, _PAIR = 8.0, 0.3, 6.0  # nanoseconds: an entry in a pass, a product of two numbers, a pair of cuts in the master
_PART = 0.2  # of a pass's time
_LEAST = 5e6  # nanoseconds that nobody minds


def cuts_of(options: TrainOptions, blocks: int, cuts: int) -> int:
    """Cuts of each block to begin with, where one block has `cuts`."""
    return CUTS if blocks >= MANY and options.max_cuts is None else cuts


def preferred(
    options: TrainOptions, blocks: int, cuts: int, *, dimension: int, rows: int, row_bytes: int, share: int
) -> tuple[Blocked, ...]:
    """`blocks`, or half of them, and so on, as long as they are MANY: what each of these choices takes.

    Of one block with `cuts`, each of the `rows` takes `row_bytes`, of which `share` in each cut.
    """
    found, fewest = [], max(2, min(blocks, MANY))
    while blocks >= fewest:
        own = cuts_of(options, blocks, cuts)
        most = most_cuts(options, own, 8 * dimension * blocks + share * rows)
        more = 8 * dimension * ((blocks - 1) * (own + 1) + blocks * _SUMS)
        found.append(Blocked(blocks, own, max(own, min(most, _CUTS_OF_ALL // blocks)), row_bytes + share * (own - cuts), more))
        blocks //= 2
    return tuple(found)


def blocks_wanted(options: TrainOptions, statistics: Statistics, lanes: Lanes, dimension: int, cuts: int) -> int:
    """A power of two, or a multiple of the lanes near one.

    One where not even MANY are worth what they cost; in one lane, where accelerated passes are as few and cheaper
    (streamcut.solvers.acceleration); and for an elastic net, whose master problem is another one.
    """
    blocks = _MOST
    while blocks >= MANY and not _fits(blocks, statistics, dimension, cuts_of(options, blocks, cuts)):
        blocks //= 2
    if blocks < MANY or options.l1 != 0.0 or len(lanes) == 1:
        return 1
    while blocks > 1 and blocks * _ROWS > statistics.n_rows:
        blocks //= 2
    return Blocks.of(lanes, blocks).count if blocks > 1 else 1


def _fits(blocks: int, statistics: Statistics, dimension: int, cuts: int) -> bool:
    all_cuts = blocks * (cuts + 1)
    time = 2.0 * blocks * all_cuts * dimension * _PRODUCT + all_cuts * all_cuts * _PAIR
    return 8 * dimension * blocks * (cuts + 1 + _SUMS) <= _BYTES and time <= max(_LEAST, _PART * _ENTRY * statistics.nnz)

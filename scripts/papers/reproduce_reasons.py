"""Why a figure of a paper does not come out here, for those lines of reproduce.py's table that do not hold.

"perhaps" stands before what was not looked into.
"""

import re

REASONS = (  # the first whose pattern is found in the item
    (
        r"time ~ n\^d, classification|time ~ m\^e",
        "an iteration costs something whatever the rows are, and with so few that counts",
    ),
    (r"time ~ n\^d, decomposition", "perhaps: all columns of so few rows stay in LIBSVM's cache"),
    (r"iterations ~ n\^d", "perhaps: grows up to some thousand rows; theirs have hundreds of thousands"),
    (r"\(1/ε\)\^d", "the fit begins at ε = 0.3, where a few iterations do, and it is steeper the larger C is"),
    (r"~ C\^d", "perhaps: another set than theirs"),
    (r"time of decomposition / cutting planes", "fewer rows than theirs, and decomposition is what grows with them"),
    (r"time of ordinal regression", "their range ends at what a sort costs; here ranks take a radix sort and a Fenwick tree"),
    (r"iterations of CPA / of OCAS", "perhaps: another set than theirs (more is better for OCAS)"),
    (r"time of CPA / of OCAS", "perhaps: few rows, of which an iteration takes no time"),
    (r"SGD of 10 epochs above", "the more rows, the more steps in ten epochs"),
    (r"speed-up by", "perhaps: by the clock, of a machine that may have other work"),
    (r"test error above LIBSVM's", "perhaps: theirs is at a million rows; of constant time it is smaller there"),
    (r"Table 1: test error .*(adult|covertype)", "the data: LIBSVM's error on the same rows differs as much from theirs"),
    (r"Table 1: test error .*checkers", "fewer rows than their million; LIBSVM's error on the same rows says how much of it"),
    (r"Figure 8", "so it is in the first epochs, while most α are free; an independent BSCA gives the same"),
    (r"Table 2: test accuracy .*bsca, paper", "without damping the last steps of one epoch decide; see the line with it"),
    (r"Table 2: test accuracy", "perhaps: rows of another split, or fewer"),
    (r"of the axis|part of the axis", "perhaps: fewer rows or epochs than theirs: the curves cross"),
)


def reason(item: str) -> str:
    """Why, as far as it is known."""
    return next((why for pattern, why in REASONS if re.search(pattern, item)), "not known")

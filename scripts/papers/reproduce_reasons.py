"""Why a figure of a paper does not come out here, for those lines of reproduce.py's table that do not hold.

Each was tried, as it says; "not known" is what nobody has tried to find out.
"""

import re

REASONS = (  # the first whose pattern is found in the item
    (
        r"Figure 1: time ~ n\^d, classification|time ~ [mr]\^",
        "iterations fall like n^−0.3 there, and one of so few rows costs what its quadratic program does",
    ),
    (r"time ~ n\^d, decomposition", "LIBSVM keeps all columns of so few rows in its cache of 400 MB, and computes each once"),
    (r"iterations ~ n\^d", "they grow up to some thousand rows, and less from there on, as the note says where it was run again"),
    (r"\(1/ε\)\^d", "the fit begins at ε = 0.3, where a few iterations do; without it the exponent is that of the note"),
    (r"accuracy at ε ≤ 0.01 differs", "less than the deviation of the test set: 4,880 rows at 75 % are good to 0.6 points"),
    (r"time of decomposition / cutting planes", "fewer rows than theirs, and decomposition is what grows with them"),
    (r"time of ordinal regression", "their range ends at what a sort costs; here ranks take a radix sort and a Fenwick tree"),
    (r"CPA / of OCAS, reuters21578", "tried: 2.1, 1.9, 1.7 at C / 10, C, 10 C; so few iterations have little to save"),
    (
        r"CPA / of OCAS, (covtype|artificial)",
        "tried: it grows with C; at C / 10, C, 10 C covtype_20k 5.8, 9.1, 12, artificial 3.1, 6.6, 13",
    ),
    (
        r"SGD of 10 epochs above",
        "tried: not the rows, but C; 30,000 of its rows give 0.26, 3.4, 71, 1,800 % at C = 0.01, 0.1, 1, 10",
    ),
    (r"Table 1: test error .*adult", "the data: LIBSVM's error on the same rows differs as much from theirs"),
    (r"Table 1: test error .*covertype", "15,120 rows for 522,910; LIBSVM's error on the same rows differs as much from theirs"),
    (
        r"as good as \w+ by kernel evaluations",
        "a row that the rival leaves alone costs it no column here; by rows looked at, as the paper counts, see the next line",
    ),
    (r"as good as \w+ by rows looked at", "on the first rows, of which few seeds tell little, and late, by what the note says"),
    (
        r"less the Perceptron after an epoch",
        "its iterate is not averaged: in the first epoch it errs from 17 to 23 % on a9a",
    ),
    (
        r"less the Perceptron at the end",
        "C = 1 is too little for mnist, 1,000 in section 5; SMO's error at C = 1 is SBP's",
    ),
    (r"Figure 8", "not known why; an independent BSCA gives the same"),
    (
        r"Table 2: test accuracy .*bsca, paper",
        "without damping the last steps of an epoch decide, 76 ± 10 over seeds",
    ),
    (
        r"(swings|deviation) of the accuracy .*susy|accuracy at B = 200.*susy",
        "accuracies of both go from 47 to 78 % and back from look to look in all five seeds, with 500 vectors as well",
    ),
    (
        r"accuracy at B = 200.*covtype",
        "so in all five seeds, at all late looks; with 500 vectors within 2 points; without a budget there are 3,563",
    ),
    (
        r"swings of the accuracy in time|deviation of the accuracy over seeds",
        "not known why; on a9a it is so without a budget, too (Figure 4), so merging is not all of it",
    ),
    (r"accuracy at B = 200", "of one moment, while one seed of three is at 44 %: the swings of Figures 2, 3"),
)


def reason(item: str) -> str:
    """Why, as far as it is known."""
    return next((why for pattern, why in REASONS if re.search(pattern, item)), "not known")

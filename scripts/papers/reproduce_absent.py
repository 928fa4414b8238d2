"""Figures of the papers that nothing here can be put next to, each with the reason; they are counted as not comparable."""

from __future__ import annotations

from typing import Any

from reproduce_tools import fact

JOACHIMS, FRANC, YU, QAADAN, COTTER = "Joachims 2006", "Franc 2008", "Yu & Joachims 2008", "Qaadan 2019", "Cotter 2012"
_TIMES = (  # Table 1 of Joachims: seconds of SVM-perf, of SVM-light, of ordinal regression
    ("Reuters CCAT", 149.7, 20075.5, 304.1), ("Reuters C11", 178.9, 5187.4, 499.1), ("Arxiv astro-ph", 16.9, 80.1, 26.1),
    ("Covertype 1", 171.7, 25514.3, 1109.1), ("KDD04 Physics", 31.9, 1040.2, 132.5),
)  # fmt: skip
_OBJECTIVES = (  # Table 2 of Franc: objective of OCAS, its iterations and seconds
    ("astro", 2.1103e3, 21, 1), ("ccat", 8.1462e4, 48, 25), ("cov1", 2.5045e6, 80, 10), ("mnist", 6.7158e5, 137, 10),
    ("worm", 3.1920e4, 125, 258), ("artificial", 1.3172e2, 76, 13),
)  # fmt: skip
_AREAS = (("astro", 98.15), ("ccat", 98.51), ("cov1", 83.92), ("mnist", 95.86), ("worm", 99.45), ("artificial", 86.38))
_OTHERS = "Perceptron, OGD, RBP, Forgetron, Projectron, Projectron++, BPAS, BOGD, FOGD, NOGD"
_OTHER_SET = "the set is not here; its ratio stands on a line of its own, of the nearest set"


def absent() -> list[dict[str, Any]]:
    """Lines with what the paper says and no figure of ours."""
    lines: list[tuple[str, str, float | str, str]] = []
    for name, perf, light, ordinal in _TIMES:
        told = f"{perf:,g} (SVM-light {light:,g}; ordinal {ordinal:,g})"
        lines.append((JOACHIMS, f"Table 1: CPU seconds, {name}", told, _OTHER_SET))
    lines += [
        (JOACHIMS, "Figure 1, second from the right: time at the best C of each n", "about linear",
         "a search for C at every n of sets that are not here"),
        (JOACHIMS, "Figure 1: SVM-light's time ~ n^d of ordinal regression", "3.4", "SVM-light is not here"),
        (JOACHIMS, "Theorems 4, 6: time O(s n), O(s n log n)", "–", "an order of growth; Figure 1's slopes are what it leads to"),
    ]  # fmt: skip
    for name, objective, iterations, seconds in _OBJECTIVES:
        told = f"{objective:.4g} after {iterations}, {seconds} s"
        why = "which digits are against which is not said" if name == "mnist" else "the set is not here"
        lines.append((FRANC, f"Table 2: objective of OCAS, iterations, seconds, {name}", told, why))
    for name, area in _AREAS:
        lines.append((FRANC, f"Table 3: area under the ROC curve (%), {name}", area, "the set or its task is not here"))
    lines += [
        (FRANC, "Table 2: BMRM, Pegasos, SVM-light", "–", "programs that are not here"),
        (FRANC, "Table 4: speed-up by 4, 8, 16 processors", "3.09, 4.5, 4.6", "a machine of two"),
        (YU, "Table 1: CPU seconds", "537 to 273,021", "another machine, and programs whose cuts are counted otherwise"),
        (YU, "Table 1: test error (%), Cholesky 5,000 and 10,000, Adult", "12.43, 11.41",
         "not run: 10,000 dense features of every row"),
        (QAADAN, "Table 1: seconds of LIBSVM", "47 to 1.8 million", "another machine"),
        (QAADAN, "Table 1: accuracy (%), COD-RNA", 96.33, "the set is not here"),
        (QAADAN, "Table 2: accuracy (%), COD-RNA: BSCA, BSGD", "95.68, 89.85", "the set is not here"),
        (QAADAN, f"Table 2: {_OTHERS}", "–", "algorithms of other programs, none of which is here"),
        (QAADAN, "Table 2: training seconds of BSCA, ADULT and IJCNN", "9.84, 11.53", "another machine"),
        (COTTER, "Table 1: bounds on evaluations", "–", "up to constants and logarithms; their rates have lines"),
        (COTTER, "section 5: Forest, LIBSVM and SBP (%)", "1.8, 1.6", "522,910 rows are not here"),
        (COTTER, "section 5: seconds of LIBSVM", "195, 1,980, 126,000", "another machine"),
        (COTTER, "Theorem D.2", "–", "its constant is not given"),
    ]  # fmt: skip
    return [fact(paper, item, there, "–", why) for paper, item, there, why in lines]

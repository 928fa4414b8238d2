"""Options of other programs, translated to ours: the same problem, or a refusal that names what has no counterpart.

Ours is F(w) = ½‖w‖² + C Σ_i u_i ℓ(⟨w, x_i⟩; y_i) with C per row and a regularised constant feature `bias`. With m rows:

    LIBLINEAR -c C; LIBSVM -c C; LinearSVC(C=C), LinearSVR(C=C)            C
    svm_perf -c c     (½‖w‖² + c · loss in percent)                        100·c / m
    svm_rank -c c     (½‖w‖² + c · mean over queries of their losses)      c·P / (N·m) for P pairs in N queries, with -l 2
                                                                           c·Q / (N·m) for Q queries with pairs
    svm_hmm -c c      (½‖w‖² + c · mean over sequences of their losses)    c / N for N sequences
    VW --l2 λ, SGDClassifier(alpha=λ)   (λ/2‖w‖² + mean loss)              1 / (λ·m), 2 / (λ·m) for VW's squared loss, which is r²
    VW --bfgs --l2 λ  (λ/2‖w‖² + Σ loss)                                   1 / λ, 2 / λ
    Ridge(alpha=λ)    (λ‖w‖² + Σ r²)                                       1 / λ

With λ₁‖w‖₁ + (λ₂/2)‖w‖² all is divided by λ₂, so --l1 is λ₁/λ₂. With more than two classes (--classes) LIBLINEAR, VW's
--oaa, LinearSVC and SGDClassifier train each against the rest, LIBLINEAR's -s 4 and LogisticRegression all of them together.

One file per program; `translation` has what they share. A new program is a file and a line in TOOLS.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from streamcut.errors import OtherProgramError
from streamcut.flags.liblinear import liblinear
from streamcut.flags.libsvm import libsvm
from streamcut.flags.scikit_learn import sklearn
from streamcut.flags.svm_struct import svm_hmm, svm_perf, svm_rank
from streamcut.flags.translation import PROGRAMS, Counts, Translation
from streamcut.flags.vw import vw
from streamcut.foundation.shown import unknown

TOOLS: dict[str, Callable[[str, Counts], Translation]] = {
    "liblinear": liblinear,
    "libsvm": libsvm,
    "svm_perf": svm_perf,
    "svm_rank": svm_rank,
    "svm_hmm": svm_hmm,
    "vw": vw,
    "sklearn": sklearn,
}


def tool_of(text: str) -> str:
    """The one of TOOLS that a command line or estimator call belongs to. Raises UsageError where that is not clear."""
    first = os.path.basename(text.split(maxsplit=1)[0]).removesuffix(".exe") if text.strip() else ""
    if re.match(r"[A-Z]\w*\(", text.strip()):
        return "sklearn"
    for tool, programs in PROGRAMS.items():
        if first in programs:
            return tool
    raise OtherProgramError(f"{text!r} does not begin with the name of a program; name it with --from: {', '.join(TOOLS)}")


def translate(tool: str, text: str, **counts: int | None) -> Translation:
    """The problem that `text` poses to `tool` (one of TOOLS), in our options; `counts` are those of Counts, where C needs them.

    Raises UsageError naming every option that is unknown here or changes the problem.
    """
    if tool not in TOOLS:
        raise OtherProgramError(f"--from: {unknown(tool, TOOLS)}")
    return TOOLS[tool](text, Counts(**counts))

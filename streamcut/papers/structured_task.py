"""A structured task: a joint feature map, a loss and an argmax (Tsochantaridis et al. 2005, margin rescaling)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class StructuredTask(Protocol):
    """A user-defined task. An example is the rows of one qid or, without qid, a row:

    x  SciPy CSR array (rows × n_features)      y  float64 (rows,), its labels; an answer ŷ is any value that argmax returns

    Answers score ⟨w, Ψ(x, ŷ)⟩. Training minimises ½‖w‖² + C Σ max_ŷ (loss(y, ŷ) + ⟨w, Ψ(x, ŷ)⟩ − ⟨w, Ψ(x, y)⟩), which needs
    argmax to be exact: answers it misses are missing in the reported objective (the lower bound still holds).
    """

    def size(self, n_features: int) -> int:
        """D, the length of Ψ."""

    def joint_features(self, x: Any, y: Any) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Ψ(x, y): float64 (D,), or (indices, values), where an index may be repeated. `y` may be an answer."""

    def loss(self, y: np.ndarray, answer: Any) -> float:
        """The cost of `answer` if y is true: at least 0, and 0 for y itself."""

    def argmax(self, w: np.ndarray, x: Any, y: np.ndarray | None = None) -> Any:
        """The answer with the largest ⟨w, Ψ(x, ŷ)⟩ or, when y is given, the largest loss(y, ŷ) + ⟨w, Ψ(x, ŷ)⟩."""

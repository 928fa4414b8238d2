"""Messages about options of `train` in the words of an estimator, some of whose parameters have scikit-learn's names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streamcut.errors import StreamcutError

_NAMES = {"max_passes": "max_iter", "workers": "n_jobs", "seed": "random_state", "intercept": "intercept_penalty"}
_WORDS = (  # options with their values, and without
    (r"\bintercept free\b", "intercept_penalty=False"),
    (r"\bintercept regularised\b", "intercept_penalty=True"),
    (r"\bbias 0\b", "fit_intercept=False"),
    (r"\bbias (\d[\w.]*)", r"intercept_scaling=\1"),
    (r"\blarge bias\b", "large intercept_scaling"),
)
_TASKS = {"binary": "two classes", "multiclass": "several classes", "regression": "numbers", "one-class": "one class"}
_TASK = re.compile(rf"\btask (\w[\w-]*(?:, (?:{'|'.join(_TASKS)}))*)")
_REST = 'LinearSVM(loss="logistic", strategy="one-vs-rest")'


@contextmanager
def named(estimator: Any) -> Iterator[None]:
    """Within it errors use the names of the estimator."""
    try:
        yield
    except StreamcutError as error:
        error.args = tuple(in_our_names(estimator, each) if isinstance(each, str) else each for each in error.args)
        raise


def in_our_names(estimator: Any, text: str) -> str:
    """A message about options of `train` with the names of the estimator."""
    parameters = estimator.get_params(deep=False)
    names = {theirs: ours for theirs, ours in _NAMES.items() if ours in parameters}
    scaled = parameters.get("fit_intercept") and parameters.get("intercept_scaling", 1.0) != 1.0
    names["bias"] = "intercept_scaling" if scaled else "fit_intercept"
    text = re.sub(r"^(\w+)(?=:)|\b(\w+)(?==)", lambda found: names.get(found[0], found[0]), text)
    for pattern, ours in _WORDS:
        text = re.sub(pattern, ours, text)
    if "strategy" not in parameters:
        text = text.replace("strategy one-vs-rest", _REST)
    return _TASK.sub(lambda found: ", ".join(_TASKS.get(each, f"task {each}") for each in found[1].split(", ")), text)

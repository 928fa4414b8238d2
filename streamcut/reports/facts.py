"""The contents of a report as data: the command that retrains the model, traffic, the largest weights."""

from __future__ import annotations

import os
import shlex

import numpy as np

from streamcut.config import COMMON, IN_MEMORY, TrainOptions
from streamcut.errors import BadInputError
from streamcut.foundation.opened import read_lines
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.models.multiclass import MulticlassModel
from streamcut.models.stated import BEGUN
from streamcut.solver_table import SOLVER_TABLE

_SECONDS = ("max_time",)
_PROVED = ("primal", "at_most", "at_least")
MOST_CLASSES = 20


def command(model: Model, path: str | os.PathLike | None = None) -> str:
    """The command line that trains `model` again, after one that makes the store of rows that were not in one; DATA stands for
    in-memory data."""
    data, file, before = model.parameters.get("data", "DATA"), os.fspath(path or "m.npz"), ""
    if (convert := model.parameters.get("convert")) is not None:
        options = [f"--{name.replace('_', '-')}={value}" for name, value in convert.items() if not isinstance(value, bool)]
        flags = [f"--{name.replace('_', '-')}" for name, value in convert.items() if value is True]
        before = f"{shlex.join(['streamcut', 'convert', data, 'rows.zarr', '--recipe', file, *options, *flags])} && "
        data = "rows.zarr"
    words = ["streamcut", "train", data, "--model", file]
    asked = {**model.parameters, "solver": model.solver}  # the meaning of "auto" may change
    if asked.get("warm_start") == IN_MEMORY:
        del asked["warm_start"]
    known = (*COMMON, "seed", *SOLVER_TABLE[model.solver].options) if model.solver in SOLVER_TABLE else tuple(asked)
    for name, field in TrainOptions.__dataclass_fields__.items():
        value = asked.get(name, field.default)
        if name not in known or value == field.default or (name == "gamma" and asked.get("kernel") == "linear"):  # which has no γ
            continue
        if value is None:
            value = 0  # switched off
        text = f"{value!r}s" if name in _SECONDS else repr(value) if isinstance(value, float) else str(value)
        words += [f"--{name.replace('_', '-')}", text]
    return before + shlex.join(words)


def loss_in_words(model: Model) -> str:
    """The loss and C, or kernel, that the model was trained with, as far as recorded."""
    known = {name: model.parameters.get(name) for name in ("loss", "kernel", "C")}
    kernel = None if known["kernel"] in (None, "linear") else f"{known['kernel']} kernel"
    loss = f"{known['loss']} loss" if known["loss"] not in (None, "auto") else None
    return " · ".join(filter(None, (loss, kernel, None if known["C"] is None else f"C = {known['C']:g}")))


def begun_in_words(model: Model) -> str:
    """What `certify` proved about its given model; "" if this one is not from `certify`."""
    given = model.parameters.get(BEGUN)
    if not isinstance(given, dict) or not all(isinstance(given.get(name), int | float) for name in _PROVED):
        return ""
    primal, most, least = (float(given[name]) for name in _PROVED)
    return (
        f"Found by certifying {given.get('model')}, whose objective is {primal:.8g}: at most {100 * most:.2g} %, at least "
        f"{100 * least:.2g} % above the optimum."
    )


def traffic(model: Model) -> dict[str, float]:
    """Totals of training, also per pass and per second; empty if the solver does not record them."""
    last = model.history[-1] if model.history else {}
    recorded = [kind for kind in ("read", "computed") if f"bytes_{kind}" in last]
    work = "passes" if "passes" in last else "epoch"
    if not recorded or not {work, "seconds"} <= last.keys():
        return {}
    passes: float = last[work]
    seconds = max(last["seconds"], 1e-9)
    found = {"passes": passes, "seconds": last["seconds"], "seconds_per_pass": last["seconds"] / max(passes, 1)}
    found |= {"rows": last["rows"]} if "rows" in last else {}
    for kind in recorded:
        size = last[f"bytes_{kind}"]
        found[f"bytes_{kind}"], found[f"bytes_{kind}_per_pass"] = size, size / max(passes, 1)
        found[f"GB_per_second_{kind}"] = size / seconds / 1e9
    return found


def top_features(model: Model, names: list[str] | None, count: int = 20) -> dict[str, list[tuple[str, float]]]:
    """For each side or class: the features with the greatest weights for it, (name, weight), at most `count`.

    Two classes: towards the positive and the negative label. Several: the first MOST_CLASSES. Kernel models have no weights.
    """
    if isinstance(model, LinearModel):
        ends = (
            ("higher scores", "lower scores")
            if model.labels is None
            else tuple(_spelled(model, label) for label in model.labels[::-1])
        )
        return {ends[0]: _greatest(model.weights, names, count), ends[1]: _greatest(-model.weights, names, count, sign=-1.0)}
    if isinstance(model, MulticlassModel):
        columns = list(zip(model.labels, model.weights.T, strict=True))[:MOST_CLASSES]
        return {_spelled(model, label): _greatest(np.ascontiguousarray(w), names, min(count, 10)) for label, w in columns}
    return {}


def _spelled(model: Model, label: float) -> str:
    word = model.label_word(label)
    return word if isinstance(word, str) else f"{word:g}"


def names(model: Model) -> list[str] | None:
    """Names of all features, None if the recipe has none."""
    if model.recipe is None or model.recipe.names is None:
        return None
    return [model.feature_name(j) or f"{j + 1}" for j in range(model.n_features)]


def vocabulary(path: str | os.PathLike, n_features: int) -> list[str]:
    """Names of the features, one a line. Raises NotFoundError, and BadInputError if they are not as many as the features."""
    names = read_lines(path, "vocabulary")
    if len(names) != n_features:
        raise BadInputError(f"{path}: {len(names):,} names, but the model has {n_features:,} features; write one name a line")
    return names


def _greatest(weights: np.ndarray, names: list[str] | None, count: int, sign: float = 1.0) -> list[tuple[str, float]]:
    """Features with the greatest positive `weights`; the first of equals first."""
    order = np.argsort(-weights, kind="stable")[:count]
    return [(names[j] if names else f"{j + 1}", sign * float(weights[j])) for j in order.tolist() if weights[j] > 0]

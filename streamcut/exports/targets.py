"""The formats that models are exported to, and what each can hold: one list for commands, Python and error messages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A format of another program.

    module, function   produce its bytes: `function` of the module streamcut.exports.`module`
    what               for help
    endings            file name endings that select it
    recipe             whether it holds how raw rows become features
    words              whether its labels may be words
    probabilities      kinds of links (streamcut.models.link) that it can hold; fitted ones only where `fitted`
    bytes_a_weight     memory per weight while writing, at most; if `sparse`, none for features without weights
    libraries          bytes of its libraries
    """

    module: str
    function: str
    what: str
    endings: tuple[str, ...]
    recipe: bool = False
    words: bool = True
    probabilities: tuple[str, ...] = ("Sigmoid", "Softmax", "Odds")
    fitted: bool = True
    bytes_a_weight: int = 48
    sparse: bool = False
    libraries: int = 0


_ROWS = 104 << 20  # what reads raw rows: Arrow, Numba

TARGETS = {
    "liblinear": Target(
        "liblinear",
        "liblinear_text",
        "LIBLINEAR's text model",
        (),
        words=False,
        probabilities=("Sigmoid", "Odds"),
        fitted=False,
        bytes_a_weight=256,
    ),  # and any other ending
    "sklearn": Target(
        "sklearn",
        "sklearn_joblib",
        "a fitted scikit-learn estimator, of tables a Pipeline (a pickle: load only files that you trust)",
        (".joblib", ".pkl"),
        recipe=True,
        fitted=False,
        libraries=_ROWS + (124 << 20),
    ),
    "onnx": Target(
        "onnx",
        "onnx_graph",
        "a graph for ONNX runtimes (needs streamcut[onnx])",
        (".onnx",),
        bytes_a_weight=240,
        libraries=32 << 20,
    ),
    "json": Target(
        "as_json",
        "json_weights",
        "weights by feature",
        (".json",),
        recipe=True,
        bytes_a_weight=400,
        sparse=True,
        libraries=_ROWS,
    ),
}


def target_of(path: str) -> str:
    """The target for the ending of the file name `path`."""
    return next((name for name, target in TARGETS.items() if path.endswith(target.endings)), "liblinear")


def that_hold(what: str) -> str:
    """The names of the targets whose field `what` is true, for messages."""
    return " or ".join(name for name, target in TARGETS.items() if getattr(target, what))

"""The formats that models are exported to, and what each can hold: one list for commands, Python and error messages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A format of another program, made by `content` of the module streamcut.exports.`module`.

    endings        file name endings that select it
    recipe, words  whether it holds how raw rows become features, and labels that are words
    links          kinds of links (streamcut.models.link) that it can hold; fitted ones only where `fitted`
    """

    module: str
    endings: tuple[str, ...]
    recipe: bool = False
    words: bool = True
    links: tuple[str, ...] = ("Sigmoid", "Softmax", "Odds")
    fitted: bool = True


TARGETS = {
    "liblinear": Target("liblinear", (), words=False, links=("Sigmoid", "Odds"), fitted=False),
    "sklearn": Target("sklearn", (".joblib", ".pkl"), recipe=True, fitted=False),
    "onnx": Target("onnx", (".onnx",)),
    "json": Target("as_json", (".json",), recipe=True),
}


def that_hold(what: str) -> str:
    """The names of the targets whose field `what` is true, for messages."""
    return " or ".join(name for name, target in TARGETS.items() if getattr(target, what))

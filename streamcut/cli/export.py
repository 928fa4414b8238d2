"""streamcut export"""

from __future__ import annotations

from typing import Literal

from streamcut.cli.destinations import refuse_existing


def run(
    model: str, file: str, *, to: Literal["json", "liblinear", "onnx", "sklearn"] | None, without_recipe: bool,
    without_probabilities: bool, force: bool = False,
) -> None:  # fmt: skip
    refuse_existing(file, "FILE", force, reads=[model])

    from streamcut.exports.export import export

    dropped = {"without_recipe": without_recipe, "without_probabilities": without_probabilities}
    export(model, file, to=to, replace=force, **dropped)

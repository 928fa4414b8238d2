"""All formats of input, in the order in which they are listed."""

from __future__ import annotations

from streamcut.io.formats import matrices, tables
from streamcut.io.formats.format import Format
from streamcut.io.formats.text import SVMLIGHT, VW

_LISTED = (
    SVMLIGHT,
    tables.CSV,
    tables.TSV,
    tables.JSONL,
    tables.PARQUET,
    tables.ARROW,
    tables.DOCUMENTS,
    tables.FRAME,
    matrices.NPZ,
    matrices.NPY,
    matrices.MTX,
    matrices.ANNDATA,
    matrices.LISTS,
    matrices.TENX,
    VW,
    matrices.STORE,
)
FORMATS: dict[str, Format] = {each.name: each for each in _LISTED}
ASKED = tuple(name for name, each in FORMATS.items() if each.help)
SCORED = tuple(name for name in ASKED if FORMATS[name].scored)  # what `predict` and `evaluate` read without a store


def kinds_with(option: str) -> tuple[str, ...]:
    """The formats that have an option of `convert`; () if all have it."""
    return tuple(name for name, each in FORMATS.items() if option in each.options)


def listing() -> str:
    """The formats with their descriptions, for help texts."""
    together: dict[str, list[str]] = {}
    for name in ASKED:
        together.setdefault(FORMATS[name].help, []).append(name)
    lines = []
    for text, names in together.items():
        first, *others = text.split("\n")
        head = ", ".join(names)
        lines += [f"  {head:<10} {first}"] if len(names) == 1 else [f"  {head}", f"{'':13}{first}"]
        lines += [f"{'':13}{other}" for other in others]
    return "\n".join(lines)

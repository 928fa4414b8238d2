"""Objects of models and checkpoints as JSON and arrays, field by field. Nothing is executed, and only the classes below are made.

An array is {"$array": its name among the arrays}, a tuple {"$tuple": [...]}, an object {"$class": its class, field: value, …};
everything else is what JSON has. Fields that do not compare (`field(compare=False)`) follow from the others and are left out.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np

from streamcut.foundation.chunk import is_sparse
from streamcut.foundation.shown import Json, shown
from streamcut.io.recipe.recipe import Recipe

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MODULES = {
    "LinearModel": "models.linear",
    "KernelModel": "models.kernel",
    "Certificate": "models.certificate",
    "StopReason": "models.certificate",
    "Cut": "models.certificate",
    "DualPoint": "models.certificate",
    "CutError": "foundation.rounding",
    "Sigmoid": "models.link",
    "SoftmaxLink": "models.link",
    "Kernel": "kernels.kernel",
    "NystroemMap": "kernels.maps",
    "FourierMap": "kernels.maps",
    "Chunk": "foundation.chunk",
    "Problem": "problem",
    # parts of checkpoints
    "Answer": "solvers.columns_state",
    "Best": "solvers.state",
    "Drift": "foundation.rounding",
    "GramSolution": "papers.gram_bundle",
    "Grids": "foundation.rounding",
    "Guard": "solvers.columns_state",
    "Interval": "bundle.intercept",
    "Line": "solvers.columns_state",
    "TargetScale": "losses.loss",
    "Traffic": "execution.feed",
}
_ROWS = ("data", "indices", "indptr")


def packed(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Json:
    """`value` in JSON types; the arrays in it are added to `arrays` under names that begin with `name`."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"$array": name}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Recipe):  # the same one in all parts of a model
        arrays["recipe"] = np.frombuffer(value.to_json(), np.uint8)
        return {"$recipe": "recipe"}
    if isinstance(value, Enum):
        return {"$class": type(value).__name__, "value": value.value}
    keys = getattr(value, "_fields", None)  # of a named tuple
    if is_dataclass(value):
        keys = [part.name for part in fields(value) if part.init and part.compare]
    if keys is not None:
        start = f"{name}." if name else ""
        return {"$class": type(value).__name__, **{key: packed(getattr(value, key), start + key, arrays) for key in keys}}
    if is_sparse(value):
        parts = zip(_ROWS, (value.data, value.indices, value.indptr), strict=True)
        return {"$csr": list(value.shape), **{key: packed(part, f"{name}.{key}", arrays) for key, part in parts}}
    if isinstance(value, dict):
        return {str(key): packed(part, f"{name}.{key}", arrays) for key, part in value.items()}
    if isinstance(value, list | tuple):
        items = [packed(part, f"{name}.{number}", arrays) for number, part in enumerate(value)]
        return {"$tuple": items} if isinstance(value, tuple) else items
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def unpacked(value: Any, arrays: Any) -> Any:
    """The inverse of `packed`, from `arrays` by name. Raises ValueError, KeyError or TypeError for anything else."""
    if isinstance(value, list):
        return [unpacked(part, arrays) for part in value]
    if not isinstance(value, dict):
        return value
    if "$array" in value:
        array = arrays[value["$array"]]
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise ValueError(f"{value['$array']} is {array.dtype} {array.shape}, expected finite numbers")
        return array
    if "$recipe" in value:
        return Recipe.from_json(arrays[value["$recipe"]].tobytes())
    if "$tuple" in value:
        return tuple(unpacked(part, arrays) for part in value["$tuple"])
    parts = {key: unpacked(part, arrays) for key, part in value.items() if key not in ("$class", "$csr")}
    if "$csr" in value:
        from scipy.sparse import csr_array  # its import takes 0.1 s, which linear models can avoid

        return _checked(csr_array(tuple(parts[key] for key in _ROWS), shape=tuple(value["$csr"])), value["$csr"][1])
    if "$class" not in value:
        return parts
    if value["$class"] not in _MODULES:
        raise ValueError(f"{shown(value['$class'])} is no part of a model or checkpoint")
    made = resolve_name(f"streamcut.{_MODULES[value['$class']]}:{value['$class']}")(**parts)
    if value["$class"] == "NystroemMap":
        _checked(made.landmarks, made.dimension)
    return made


def _checked(rows: csr_array, n_features: int) -> csr_array:
    """CSR rows. Raises ValueError unless all entries are where they should be: compiled code checks no bounds."""
    starts, indices, values = rows.indptr, rows.indices, rows.data
    fit = len(starts) and starts[0] == 0 and starts[-1] == len(indices) == len(values) and (np.diff(starts) >= 0).all()
    if not fit or (len(indices) and not 0 <= indices.min() <= indices.max() < n_features):
        raise ValueError(f"rows whose entries are not among their {n_features:,} features")
    return rows

"""Train SVMs with a certificate on sparse data that does not fit in memory.

Names are loaded on first use, so importing streamcut costs nothing.
"""

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location

_IO = os.path.join(os.path.dirname(__path__[0]), "io")
if not os.path.isdir(os.path.join(__path__[0], "io")) and os.path.isdir(_IO):  # a clone: streamcut.io lies beside this folder
    _spec = spec_from_file_location("streamcut.io", os.path.join(_IO, "__init__.py"), submodule_search_locations=[_IO])
    io = sys.modules["streamcut.io"] = module_from_spec(_spec)
    _spec.loader.exec_module(io)

__version__ = "0.1.0"

_VERBS = ("fit", "convert", "train", "tune", "cross_validate", "predict", "evaluate", "explain", "weights", "standard_errors",
          "calibrate", "verify", "certify", "report", "export")  # fmt: skip
_HOMES = {  # the module, and the name in it
    **{name: ("streamcut.api", name) for name in _VERBS},
    "open": ("streamcut.io.opening", "open_dataset"),
    "rows": ("streamcut.io.sources.arrays", "in_memory"),
    "create": ("streamcut.io.conversion.create", "NewStore"),
    "CheckpointOptions": ("streamcut.config", "CheckpointOptions"),
    "set_timeout": ("streamcut.io.places.remote", "set_timeout"),
    "save_model": ("streamcut.models.files", "save_model"),
    "load_model": ("streamcut.models.files", "load_model"),
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'streamcut' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

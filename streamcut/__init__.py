"""Train SVMs with a certificate on sparse data that does not fit in memory.

Names are loaded on first use, so importing streamcut costs nothing.
"""

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder


class _Clone:
    """In a clone streamcut.io lies next to this folder. (importlib.util would take as long to import as all of this.)"""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [os.path.dirname(__path__[0])]) if name == "streamcut.io" else None


sys.meta_path.append(_Clone)  # asked last: an installed package has the folder

__version__ = "0.1.0"

_HOMES = {  # of what is no verb of streamcut.api: the module, and the name in it
    "open": ("streamcut.io.opening", "open_dataset"),
    "rows": ("streamcut.io.sources.arrays", "in_memory"),
    "create": ("streamcut.io.conversion.create", "NewStore"),
    "CheckpointOptions": ("streamcut.config", "CheckpointOptions"),
    "set_timeout": ("streamcut.io.remote", "set_timeout"),
    "save_model": ("streamcut.models.files", "save_model"),
    "load_model": ("streamcut.models.files", "load_model"),
}


def __getattr__(name: str):
    if name in _HOMES:
        module, attribute = _HOMES[name]
        return getattr(import_module(module), attribute)
    verbs = import_module("streamcut.api").VERBS if name == "__all__" or name[0] != "_" else {}
    if name == "__all__":
        return [*_HOMES, *verbs, "__version__"]
    if name not in verbs:
        raise AttributeError(f"module 'streamcut' has no attribute {name!r}")
    return verbs[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})

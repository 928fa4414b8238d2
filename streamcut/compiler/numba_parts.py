"""What streamcut takes of Numba that Numba does not document: all of it is named here, so that a new minor is tried in one place.

Each may change with any minor version of Numba; pyproject.toml allows those that the tests have run with.
"""

from __future__ import annotations

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import dispatcher  # streamcut.compiler.rehearsal puts another Dispatcher into it
from numba.core.caching import IndexDataCacheFile
from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, builtin_registry, infer_getattr

__all__ = [
    "AbstractTemplate",
    "AttributeTemplate",
    "CPUContext",
    "IndexDataCacheFile",
    "builtin_registry",
    "cpu_target",
    "dispatcher",
    "infer_getattr",
    "make_function",
    "rtsys",
]

make_function = _dynfunc.make_function

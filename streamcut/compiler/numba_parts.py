"""What streamcut takes of Numba that Numba does not document: all of it is named here, so that a new minor is tried in one place.

Each may change with any minor version of Numba; pyproject.toml allows those that the tests have run with.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding
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
    "empty_module",
    "expect_symbol",
    "infer_getattr",
    "link_later",
    "make_function",
    "rtsys",
]

make_function = _dynfunc.make_function


@cache
def empty_module() -> bytes:
    """LLVM's bitcode of a module without content."""
    return binding.parse_assembly("").as_bitcode()


def expect_symbol(name: str) -> None:
    """`name` will be in machine code that is loaded; Numba takes that from the module, else."""
    cpu_target.target_context.codegen()._engine._defined_symbols.add(name)


def link_later(library: Any, ir: bytes) -> None:
    """Let `library`, loaded from a cache, have its module from `ir` once another is linked with it."""
    library._shared_module = None
    library._get_module_for_linking = cache(lambda: binding.parse_bitcode(ir))

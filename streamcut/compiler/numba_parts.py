"""All undocumented parts of Numba that streamcut uses, so that a new minor version is checked in one place.

Each may change with any minor version of Numba; pyproject.toml allows the tested ones.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core.caching import IndexDataCacheFile
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, builtin_registry, infer_getattr
from numba.extending import intrinsic, overload

__all__ = [
    "AbstractTemplate",
    "AttributeTemplate",
    "IndexDataCacheFile",
    "builtin_registry",
    "cpu_target",
    "empty_module",
    "expect_symbol",
    "fetch",
    "infer_getattr",
    "link_later",
    "rtsys",
]


@cache
def empty_module() -> bytes:
    """LLVM's bitcode of a module without content."""
    return binding.parse_assembly("").as_bitcode()


def expect_symbol(name: str) -> None:
    """`name` will be in loaded machine code; otherwise Numba takes it from the module."""
    cpu_target.target_context.codegen()._engine._defined_symbols.add(name)


def link_later(library: Any, ir: bytes) -> None:
    """Have `library`, loaded from a cache, take its module from `ir` once another is linked with it."""
    library._shared_module = None
    library._get_module_for_linking = cache(lambda: binding.parse_bitcode(ir))


def fetch(array, i):
    """In kernels: prefetch array[i] of a one-dimensional array. Elsewhere it does nothing."""


@overload(fetch, inline="always")
def _fetched(array, i):
    return lambda array, i: _prefetch(array, i)


@intrinsic
def _prefetch(typing, array, i):

    def lowered(context, builder, signature, arguments):
        place = builder.gep(context.make_array(signature.args[0])(context, builder, arguments[0]).data, [arguments[1]])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(place, byte)
        call = builder.module.declare_intrinsic("llvm.prefetch", (byte,), ir.FunctionType(ir.VoidType(), [byte, *[number] * 3]))
        builder.call(call, [place, number(0), number(3), number(1)])  # to read, into all levels, data
        return context.get_dummy_value()

    return types.void(array, types.uint64), lowered

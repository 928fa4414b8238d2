"""Cheaper compilation in a child: helpers get no machine code of their own.

Numba optimises and assembles every function, then links its optimised form into those that call it, which are optimised and
assembled in turn: a function three levels deep, four times. A child runs nothing, so functions not callable from Python are only
linked, and optimised within their kernel. This saves a quarter of the compilation time; IEEE arithmetic is the same in any order
of optimisation. Where products and sums may share a rounding (streamcut.compiler.jit.fused) nothing is changed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from streamcut.compiler.numba_parts import CPUContext, make_function

_executable = CPUContext.get_executable


def link_helpers() -> None:
    """Only link helpers from now on, in this process."""
    CPUContext.get_executable = _linked_only  # type: ignore[method-assign]


def _linked_only(context: Any, library: Any, description: Any, environment: Any) -> Any:
    """Replaces Numba's method, which makes a Python function."""
    if context.fastmath or _has(library, description.llvm_cpython_wrapper_name):
        return _executable(context, library, description, environment)
    library._optimize_final_module = lambda: None
    library._finalize_final_module = partial(_finish, library)
    library._ensure_finalized()
    module = description.lookup_module()
    return make_function(module, description.qualname.split(".")[-1], "", 0, environment, (library,))


def _has(library: Any, name: str) -> bool:
    try:
        library.get_function(name)
    except NameError:
        return False
    return True


def _finish(library: Any) -> None:
    library._finalize_dynamic_globals()
    library._verify_declare_only_symbols()
    library._finalized = True

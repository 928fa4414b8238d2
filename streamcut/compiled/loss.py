"""What kernels may call of a loss: the methods of its record (streamcut.losses.loss, .joint), inlined into the calling kernel.

A loss is a NamedTuple of its parameters; each class is a type to Numba. So a kernel that takes a loss is compiled for each one,
and `loss.value(z, y)` in it is the same function that Python calls. No record that kernels take may have a field with one of
these names: Numba would take it for the method.
"""

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.extending import lower_builtin

from streamcut.compiler.jit import INLINED
from streamcut.compiler.numba_parts import AbstractTemplate, AttributeTemplate, infer_getattr

_METHODS = (
    *("sign", "offset", "target_size", "value", "dual", "conjugate", "constant", "curvature", "step", "lowest", "highest"),
    *("unbounded", "sized", "size", "limited", "stays", "free", "encode", "decode", "violation", "priority"),
    *("kinks", "kink", "margin", "bounded", "slope"),
    # of streamcut.compiled.problems
    *("single", "problem_of", "rest_of_row", "step_of_row", "changes_of_row", "offer_row", "sweep_row", "write_row"),
    *("z_at_zero", "slope_of", "step_along"),
)
_dispatchers: dict[Callable, Any] = {}


def _method(record, name):
    """The type of the compiled method of a type of records."""
    function = getattr(record.instance_class, name)
    if function not in _dispatchers:
        _dispatchers[function] = njit(**INLINED)(function)
    return types.Dispatcher(_dispatchers[function])


@infer_getattr
class _MethodsOfRecords(AttributeTemplate):
    """Numba's `overload_method` would recompile them for each kind of caller."""

    key = types.BaseNamedTuple

    def generic_resolve(self, record, attribute):
        if attribute not in _METHODS or not hasattr(record.instance_class, attribute):
            return None

        class Call(AbstractTemplate):
            key = types.BaseNamedTuple, attribute

            def generic(self, arguments, keywords):
                return _method(record, attribute).get_call_type(self.context, (record, *arguments), keywords).as_method()

        return types.BoundFunction(Call, record)


def _lower(name):
    @lower_builtin((types.BaseNamedTuple, name), types.BaseNamedTuple, types.VarArg(types.Any))
    def call_method(context, builder, signature, arguments):
        method = _method(signature.args[0], name)
        compiled = context.get_function(method, method.get_call_type(context.typing_context, signature.args, {}))
        context.add_linking_libs(getattr(compiled, "libs", ()))
        return compiled(builder, arguments)


for _name in _METHODS:
    _lower(_name)

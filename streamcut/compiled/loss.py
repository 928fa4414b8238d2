"""What kernels may ask of a loss: the methods of its record (streamcut.losses.loss), inlined into the kernel that calls them.

A loss is a NamedTuple of its parameters; each class of them is a type to Numba. So a kernel that takes a loss is compiled for
each one, and `loss.value(z, y)` in it is the very function that Python calls by that name. No record that kernels take may have
a field with one of these names: Numba would take it for the method.
"""

from numba import types
from numba.extending import overload_method


def _of_a_record(declared):
    """Let kernels call the method of this name, with these arguments, of whatever record has it."""
    options = {"nogil": True, "forceinline": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return overload_method(types.BaseNamedTuple, declared.__name__, jit_options=options, strict=False)(declared)


@_of_a_record
def sign(self, y):
    return self.instance_class.sign


@_of_a_record
def offset(self, y):
    return self.instance_class.offset


@_of_a_record
def target_size(self, y):
    return self.instance_class.target_size


@_of_a_record
def value(self, z, y):
    return self.instance_class.value


@_of_a_record
def dual(self, z, y):
    return self.instance_class.dual


@_of_a_record
def conjugate(self, f, y):
    return self.instance_class.conjugate


@_of_a_record
def constant(self, f, y):
    return self.instance_class.constant


@_of_a_record
def curvature(self, z, y):
    return self.instance_class.curvature


@_of_a_record
def step(self, f, z, q, y):
    return self.instance_class.step


@_of_a_record
def lowest(self, y):
    return self.instance_class.lowest


@_of_a_record
def highest(self, y):
    return self.instance_class.highest


@_of_a_record
def unbounded(self):
    return self.instance_class.unbounded


@_of_a_record
def sized(self):
    return self.instance_class.sized


@_of_a_record
def size(self, f, y):
    return self.instance_class.size


@_of_a_record
def limited(self, f, limit, u):
    return self.instance_class.limited


@_of_a_record
def stays(self, f, z, slack, y):
    return self.instance_class.stays


@_of_a_record
def free(self, f, y):
    return self.instance_class.free


@_of_a_record
def encode(self, f):
    return self.instance_class.encode


@_of_a_record
def decode(self, code, y):
    return self.instance_class.decode


@_of_a_record
def merged(self, code, other, weight):
    return self.instance_class.merged


@_of_a_record
def mixed(self, codes, i, parts, y):
    return self.instance_class.mixed


@_of_a_record
def violation(self, f, z, y):
    return self.instance_class.violation


@_of_a_record
def priority(self, f, z, norm, y):
    return self.instance_class.priority


@_of_a_record
def kinks(self):
    return self.instance_class.kinks


@_of_a_record
def kink(self, j):
    return self.instance_class.kink


@_of_a_record
def raw(self, code):
    return self.instance_class.raw


@_of_a_record
def snapped(self, f, y):
    return self.instance_class.snapped

"""The one place that decides how kernels are compiled, and where their machine code is kept.

`nogil` lets lanes run on Python threads. Never `parallel=True` (two threads that enter it abort the process under the workqueue
layer) and never `fastmath` (bounds are summed in IEEE arithmetic); where no bound is computed, `fused` lets a product and a sum
share one rounding (FMA), at half the cost.

Machine code is cached on disk. Numba's own cache checks only the source file of a kernel; here the key also covers every file
that the kernel imports helpers from, so that files may share helpers, the files of the records (NamedTuples) among its arguments,
whose methods it may call, and whether indices are checked (NUMBA_BOUNDSCHECK), which production never does. A damaged cache is
never loaded: content is verified by a checksum first, and recompiled on a mismatch.

Kernels missing from the cache are compiled in this process when they are first called. Its memory then exceeds a budget by up to
150 MB, in that run alone; a notice says so.

Kernels check no index, so each must have its indices in range: by the stated shapes of its arguments, and by checks before rows
reach it. Stores check entries, labels and lengths (streamcut.io.stores.structure), so every feature is below `n_features`, and
every label one of the statistics. scripts/test_bounds_checked.sh runs the tests with every index checked.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import numba
from numba import types

from streamcut.compiler.first_use import first_use
from streamcut.compiler.numba_parts import (
    IndexDataCacheFile,
    builtin_registry,
    cpu_target,
    empty_module,
    expect_symbol,
    link_later,
    rtsys,
)
from streamcut.foundation.opened import read_file

_Function = TypeVar("_Function", bound=Callable)
_Key: TypeAlias = "tuple[Iterable[types.Type], tuple[str, str, str], tuple[str, str]]"  # signature, processor, hashes of code
_DIGEST = 32  # bytes of a SHA-256 in front of every file of the cache
# Machine code for all processors of a kind, read-only: the wheel's (scripts/tools/build_wheel.py), one made at build time.
_SHIPPED = os.environ.get("STREAMCUT_KERNELS") or os.path.join(os.path.dirname(__file__), os.pardir, "_kernels")
TARGET = "target.json"  # in that folder: the kinds, best first
_settings: Any = numba.config  # it makes its attributes when it is imported
_HELPERS = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "fastmath": False}
_helpers: list[object] = []  # Numba's types of them hold no references


class _CheckedFiles(IndexDataCacheFile):
    """The cache files of one kernel, one for each signature, processor and state of its sources, named after them.

    A file begins with a checksum of its content and of its sources. Files that do not match, or cannot be read or written, count
    as missing. There is no index, so processes that compile at the same time do not conflict.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: str) -> None:
        super().__init__(cache_path, filename_base, source_stamp)
        self.ir = b""

    def load(self, key: _Key) -> tuple | None:
        """The content of the file for `key`, in the cache or, for processors of this kind, in the folder of shipped ones."""
        paths = [self._file(key)]
        if (shipped := shipped_key(key)) is not None:
            paths.append(os.path.join(_SHIPPED, os.path.basename(self._file(shipped))))
        for path in paths:
            try:
                stored = read_file(path)
            except OSError:
                continue
            content = stored[_DIGEST:]
            if stored[:_DIGEST] == self._sum(key, content):
                return self._without_ir(pickle.loads(content))
        first_use.say_so()
        return None

    def _without_ir(self, data: tuple) -> tuple:
        """`data` with an empty module in place of the kernel's intermediate code, which `ir` keeps.

        Running a kernel needs machine code only; parsing the rest would double the load time. Kernels that call it need the rest.
        """
        (name, form, (machine_code, self.ir)), description, *rest = data
        if b"NRT_" in machine_code:  # it makes arrays, or a kernel inside it does
            rtsys.initialize(cpu_target.target_context)
        expect_symbol(description.llvm_cpython_wrapper_name)
        return ((name, form, (machine_code, empty_module())), description, *rest)

    def save(self, key: _Key, data: tuple) -> None:
        content = self._dump(data)
        try:
            Path(self._cache_path).mkdir(parents=True, exist_ok=True)
            with self._open_for_write(self._file(key)) as file:
                file.write(self._sum(key, content) + content)
        except OSError as error:
            first_use.not_saved(self._cache_path, error)

    def _file(self, key: _Key) -> str:
        checked = bool(_settings.BOUNDSCHECK)
        name = hashlib.sha256(repr((key, checked, self._stamps(key))).encode()).hexdigest()[:20]
        return self._data_path(f"{self._index_name.removesuffix('.nbi')}.{name}.nbc")

    def _sum(self, key: _Key, content: bytes) -> bytes:
        return hashlib.sha256(f"{self._version} {self._stamps(key)}".encode() + content).digest()

    def _stamps(self, key: _Key) -> str:
        """The stamp of the kernel's sources for the signature in `key`."""
        return " ".join(_stamp(module) for module in (self._source_stamp, *sorted(set(_record_modules(key[0])))))


def _record_modules(signature: Any) -> Iterator[str]:
    """The modules of all records among the argument types of `signature`, including nested ones."""
    for kind in signature:
        if isinstance(kind, types.BaseTuple):
            yield from _record_modules(kind)
            for base in (kind.instance_class if isinstance(kind, types.NamedTuple | types.NamedUniTuple) else tuple).__mro__:
                if base.__module__.startswith("streamcut."):
                    yield base.__module__


@cache
def _sources(name: str) -> frozenset[str]:
    """The files of module `name` and of all our modules that it imports names from, recursively."""
    module = sys.modules[name]
    sources = {module.__file__ or ""}
    for value in list(vars(module).values()):
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(home, str) and home.startswith("streamcut.") and home not in (name, __name__):
            sources |= _sources(home)
    return frozenset(sources)


@cache
def _stamp(name: str) -> str:
    """The stamp of the sources of the kernels of module `name`; called once the module is complete."""
    digest = hashlib.sha256()
    for path in sorted(_sources(name), key=lambda path: Path(path).name):
        digest.update(read_file(path))
    return digest.hexdigest()


def shipped_key(key: _Key) -> _Key | None:
    """The key of code compiled ahead for all processors of this kind; None if there is none for this processor."""
    signature, (triple, _, features), code = key
    cpu = _shipped_kind(triple, features)
    return None if cpu is None else (signature, (triple, cpu, ""), code)


@cache
def _shipped_kind(triple: str, features: str) -> str | None:
    """The first kind of processor in the folder of shipped kernels that one with these features belongs to."""
    try:
        kinds = json.loads(read_file(Path(_SHIPPED, TARGET)))
    except (OSError, ValueError):
        return None
    here = set(features.split(","))
    return next((kind["cpu"] for kind in kinds if kind["triple"] == triple and set(kind["needs"]) <= here), None)


def _load(cache: Any, signature: Any, context: Any) -> Any:
    """As numba's own method, without first preparing its compiler: 0.25 s of imports, including SciPy's linear algebra.

    Machine code needs no compiler, and needs the run-time only if it makes arrays. A compiler is prepared when needed.
    """
    with cache._guard_against_spurious_io_errors():
        overload = cache._load_overload(signature, context)
    if overload is not None:
        link_later(overload.library, cache._cache_file.ir)
    return overload


def _with_cache(options: dict[str, Any], function: Callable) -> Any:
    """numba.njit with its own cache, in a temporary folder if no other is writable."""
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no location that Numba knows is writable
        if first_use.temporary:
            raise
    _settings.CACHE_DIR = tempfile.mkdtemp(prefix="streamcut-kernels-")
    atexit.register(shutil.rmtree, _settings.CACHE_DIR, ignore_errors=True)
    first_use.temporary = True
    return numba.njit(cache=True, **options)(function)


def _compiled(**options: Any) -> Callable[[Callable], Callable]:
    """A decorator: numba.njit with our cache."""
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}  # no kernel is an argument of another

    def decorate(function: Callable) -> Callable:
        kernel = _with_cache(options, function)
        kernel._cache.load_overload = partial(_load, kernel._cache)
        files = kernel._cache._cache_file
        kernel._cache._cache_file = _CheckedFiles(files._cache_path, files._index_name.removesuffix(".nbi"), function.__module__)
        kernel._cache._impl.locator.ensure_cache_path = lambda: None  # `save` does it, and may fail
        return kernel

    return decorate


# Neither kernels nor helpers allocate, so references to arrays are not counted. Otherwise a helper with array arguments costs two
# atomic operations per array and call, threads that share an array wait for each other, and a quarter of the code to compile is
# for counting.
_uncounted: dict[str, bool] = {"_nrt": False}
kernel = _compiled(**_uncounted)
fused = _compiled(fastmath={"contract"}, **_uncounted)
# For kernels that make arrays, and for those that receive such arrays.
allocating = _compiled(_nrt=True)


def for_kernels(**options: Any) -> Callable[[_Function], _Function]:
    """A decorator for functions that only kernels call: they stay plain functions in Python, so no entry point is compiled.

    numba's `register_jitable` would recompile them for each kind of caller.
    """
    options = {**_HELPERS, **_uncounted, **options}

    def decorate(function: _Function) -> _Function:
        _helpers.append(numba.njit(**options)(function))
        builtin_registry.register_global(function, types.Dispatcher(_helpers[-1]))
        return function

    return decorate


# For helpers outside inner loops, or too large for them: LLVM decides where they are inlined.
helper = for_kernels()
# For the smallest helpers of an inner loop: always inlined into their kernel.
inlined = for_kernels(forceinline=True)
INLINED = {**_HELPERS, **_uncounted, "forceinline": True}  # the options behind it
fused_inlined = for_kernels(forceinline=True, fastmath={"contract"})
fused_allocating_helper = for_kernels(_nrt=True, fastmath={"contract"})
# The same, with sums in any order, so that they vectorise.
reordered = for_kernels(forceinline=True, fastmath={"contract", "reassoc"})

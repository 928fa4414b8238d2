"""The one place that decides how kernels are compiled.

`nogil` lets lanes run on Python threads; `cache` keeps machine code on disk between runs. Never `parallel=True` (two threads
that enter it abort the process under the workqueue layer) and never `fastmath` (bounds are summed in IEEE arithmetic); where
no bound is made, `fused` lets a product and a sum share one rounding, as processors do it at half the cost.
A kernel and the helpers that it calls share a file: the disk cache does not see an edit in another one. The parser is too long
for that, and names the version of its helpers (`HELPERS` in io/text/kernels.py).
"""

import numba

kernel = numba.njit(nogil=True, cache=True, error_model="numpy")

# For the smallest helpers of an inner loop: always inlined into their kernel.
inlined = numba.njit(nogil=True, forceinline=True, error_model="numpy")

fused = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
fused_inlined = numba.njit(nogil=True, forceinline=True, error_model="numpy", fastmath={"contract"})
# The same, and sums in any order, so that they can be vectors.
reordered = numba.njit(nogil=True, forceinline=True, error_model="numpy", fastmath={"contract", "reassoc"})

"""Mercer kernels: their parameters and values (`kernel.py`), vectors of support rows (`vectors.py`), features (`maps.py`).

Compiled code for them is in streamcut.compiled (`kernel_columns.py`, `kernel_rows.py`). A new kernel is a name with its
parameters and diagonal in `kernel.py`, its formula in the compiled code, and a choice of the option `kernel` in
streamcut.config.
"""

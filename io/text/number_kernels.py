"""Reading numbers from bytes in memory, for kernels: decimal text to the nearest double, digits eight at a time.

* Runs of digits are read eight bytes at a time: the first byte that is not a digit is found by arithmetic, and the digits before
  it are summed in three multiplications, without a branch per digit. Bytes are loaded by address: passing an array to a helper
  costs the inner loop atomic reference counts, which took two thirds of the time.
* Decimal to binary is exact and nearly always without a slow path: products of exact doubles where they suffice (Clinger 1990,
  "How to read floating point numbers accurately"), else a 64 × 128 bit product (Lemire 2021, "Number parsing at a gigabyte per
  second"; Mushtak and Lemire 2023, "Fast number parsing without fallback"). Only a number of more than 19 digits very near
  the midpoint of two doubles is left to the caller (PENDING).

Every function takes an address from which at least 16 bytes can be read, with a terminating byte that is not part of a number.
The kernels that use them are cached under their own file: after an edit here, clear the Numba cache.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from streamcut.compiler.jit import helper, inlined

OK, MALFORMED, UNDERFLOW, PENDING_NUMBER = range(4)  # how reading one number ended

_U = np.uint64
_ASCII_ZEROS, _SIXES, _HIGH = _U(0x3030303030303030), _U(0x7676767676767676), _U(0x8080808080808080)
_PAIRS, _MUL_A, _MUL_B = _U(0x000000FF000000FF), _U(0x000F424000000064), _U(0x0000271000000001)
_ZERO, _ONE, _EIGHT, _16, _32, _63 = (_U(k) for k in (0, 1, 8, 16, 32, 63))
_LOW32, _ALL = _U(0xFFFFFFFF), _U(2**64 - 1)
_2_52, _2_53 = _U(1 << 52), _U(1 << 53)
_POWERS = np.array([10**k for k in range(9)], dtype=np.uint64)
_EXACT = np.array([10.0**k for k in range(23)])
_MAX_INT64 = _U(2**63 - 1)

_SMALLEST, _LARGEST = -342, 308


def _powers_of_five() -> np.ndarray:
    """The 128 leading bits of 5**q, q = -342 … 308, as (high, low); rounded up if q < 0, else down (Lemire, section 5)."""
    table = []
    for q in range(_SMALLEST, _LARGEST + 1):
        power = 5 ** abs(q)
        if q < 0:
            bits = power.bit_length()
            power = (1 << (bits + 127 if q >= -27 else 2 * bits + 128)) // power + 1
        excess = power.bit_length() - 128
        power = power >> excess if excess > 0 else power << -excess
        table.append((power >> 64, power & (2**64 - 1)))
    return np.array(table, dtype=np.uint64)


_FIVES = _powers_of_five()


@intrinsic
def byte_at(typing_context, address):
    """The byte at an address, as int64."""

    def generate(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer), ir.IntType(64))

    return types.int64(types.int64), generate


@intrinsic
def _word(typing_context, address):
    """The eight bytes from an address on, the first one lowest, as uint64."""

    def generate(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(types.int64), generate


@intrinsic
def _trailing_zeros(typing_context, word):
    """Number of zero bits below the lowest set bit of a uint64; 64 if there is none."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.int64(types.uint64), generate


@inlined
def _digits(p, total):
    """Append the digits from byte p on to the decimal number `total` (modulo 2**64); returns it and the position after them."""
    while True:
        t = _word(p) ^ _ASCII_ZEROS
        n = _trailing_zeros(((t + _SIXES) | t) & _HIGH) >> 3  # the lowest set bit belongs to the first byte that is not a digit
        if n == 0:
            return total, p
        if n == 1:  # so frequent that a predicted branch pays
            return total * _U(10) + (t & _U(15)), p + 1
        t = t << _U(64 - 8 * n)
        t = t * _U(10) + (t >> _EIGHT)
        t = ((t & _PAIRS) * _MUL_A + ((t >> _16) & _PAIRS) * _MUL_B) >> _32
        total = total * _POWERS[n] + t
        p += n
        if n < 8:
            return total, p


@helper
def _product(a, b):
    """High and low half of the 128 bit product of two uint64."""
    a1, a0, b1, b0 = a >> _32, a & _LOW32, b >> _32, b & _LOW32
    low, mid1, mid2 = a0 * b0, a1 * b0, a0 * b1
    carry = (low >> _32) + (mid1 & _LOW32) + (mid2 & _LOW32)
    return a1 * b1 + (mid1 >> _32) + (mid2 >> _32) + (carry >> _32), a * b


@helper
def _nearest(w, q):
    """The double nearest to w·10**q, ties to even, for any uint64 w (Lemire 2021, algorithm 1; no fall-back needed, 2023)."""
    if w == _ZERO or q < _SMALLEST:
        return 0.0
    if q > _LARGEST:
        return np.inf
    shift = 0
    while w < _U(1 << 56):
        w = w << _EIGHT
        shift += 8
    while w <= _MAX_INT64:
        w = w << _ONE
        shift += 1
    high, low = _product(w, _FIVES[q - _SMALLEST, 0])
    if high & _U(0x1FF) == _U(0x1FF):
        extra, _ = _product(w, _FIVES[q - _SMALLEST, 1])
        low = low + extra
        if extra > low:
            high = high + _ONE
    upper = np.int64(high >> _63)
    mantissa = high >> _U(upper + 9)
    exponent = ((217706 * q) >> 16) + 63 + upper - shift + 1023
    if exponent <= 0:  # subnormal
        if exponent <= -63:
            return 0.0
        mantissa = mantissa >> _U(1 - exponent)
        mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
        return _U(mantissa).view(np.float64)  # a carry into bit 52 correctly gives the smallest normal number
    if low <= _ONE and -4 <= q <= 23 and mantissa & _U(3) == _ONE and mantissa << _U(upper + 9) == high:
        mantissa = mantissa & ~_ONE  # exactly at the midpoint: to even
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if mantissa == _2_53:
        mantissa = _2_52
        exponent += 1
    if exponent >= 2047:
        return np.inf
    return _U((mantissa & ~_2_52) | (_U(exponent) << _U(52))).view(np.float64)


@helper
def _long_number(p, exponent):
    """(value, status) of the well-formed unsigned number at p, possibly with more than 19 digits; `exponent` as written."""
    w, kept, dropped = _ZERO, 0, False
    point = False
    while True:
        c = byte_at(p)
        if c == 46:
            point = True
        elif 48 <= c <= 57:
            if kept == 19:
                dropped = dropped or c != 48
                exponent += not point
            else:
                w = w * _U(10) + _U(c - 48)
                kept += kept > 0 or c != 48
                exponent -= point
        else:
            break
        p += 1
    value = _nearest(w, exponent)
    if dropped and _nearest(w + _ONE, exponent) != value:
        return value, PENDING_NUMBER
    return value, UNDERFLOW if value == 0.0 and w != _ZERO else OK


@inlined
def number_at(p):
    """(value, position after it, status) of the number at p: [+-] digits [. digits] [e [+-] digits], one digit at least."""
    negative = byte_at(p) == 45
    p += byte_at(p) == 45 or byte_at(p) == 43
    first = p
    w, p = _digits(p, _ZERO)
    count = p - first
    exponent = 0
    if byte_at(p) == 46:
        p += 1
        point = p
        w, p = _digits(p, w)
        exponent = point - p
        count -= exponent
    if count == 0:
        return 0.0, p, MALFORMED
    written = 0
    if byte_at(p) | 32 == 101:
        p += 1
        minus = byte_at(p) == 45
        p += byte_at(p) == 45 or byte_at(p) == 43
        start = p
        while 48 <= byte_at(p) <= 57:
            if written < 10**15:  # no text is long enough for a larger exponent to matter
                written = written * 10 + byte_at(p) - 48
            p += 1
        if p == start:
            return 0.0, p, MALFORMED
        if minus:
            written = -written
    exponent += written
    status = OK
    if count > 19:
        value, status = _long_number(first, written)
    elif w <= _2_53 and -22 <= exponent <= 22:
        value = float(w)
        value = value * _EXACT[exponent] if exponent >= 0 else value / _EXACT[-exponent]
    else:
        value = _nearest(w, exponent)
        if value == 0.0 and w != _ZERO:
            status = UNDERFLOW
    return -value if negative else value, p, status


@inlined
def whole_at(p):
    """(number, position after it, fits) of the unsigned integer at p; fits: it has a digit and is at most 2**63 - 1."""
    first = start = p
    value, p = _digits(p, _ZERO)
    if p - start > 19:
        while byte_at(start) == 48:
            start += 1
    return value, p, p > first and p - start <= 19 and value <= _MAX_INT64

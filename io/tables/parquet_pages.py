"""The sizes of the pages of Parquet files, read from the page headers without unpacking anything.

A reader holds one page of every column, packed and unpacked, and the dictionary of the column. A page may be as large as its row
group, and only its header says so. Headers are Thrift's compact protocol (parquet.thrift, PageHeader):

    1 type    2 unpacked bytes    3 packed bytes    5 data page {1 values, 2 encoding}    7 dictionary page {1 values}
    8 data page of version 2 {1 values, 4 encoding}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

_HEADER = 1 << 10  # bytes that hold most headers; statistics can make them longer
_LONGEST = 16 << 20  # longest header that Arrow accepts
_DICTIONARY_PAGE = 2
_PLAIN_DICTIONARY, _RLE_DICTIONARY = 2, 8  # encodings of values as dictionary codes
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_DEEPEST = 8


class PageError(Exception):
    """An invalid page header."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Bytes of a column chunk: its largest packed page, its largest unpacked data page, and its dictionary.

    coded   all values are codes of the dictionary, which has `keys` values
    widest  mean bytes of a value in the page, or the dictionary, where the mean is largest
    """

    packed: int = 0
    unpacked: int = 0
    dictionary: int = 0
    keys: int = 0
    coded: bool = False
    widest: float = 0.0

    def with_those_of(self, other: Pages) -> Pages:
        """The maxima over two chunks of a column."""
        return Pages(
            max(self.packed, other.packed),
            max(self.unpacked, other.unpacked),
            max(self.dictionary, other.dictionary),
            max(self.keys, other.keys),
            self.coded and other.coded,
            max(self.widest, other.widest),
        )


def pages_of(file: BinaryIO, chunk: Any) -> Pages:
    """The pages of `chunk`, pyarrow's metadata of a column chunk of `file`. Raises PageError."""
    if chunk.num_values == 0:
        return Pages()
    at = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    at = min(at or chunk.data_page_offset, chunk.data_page_offset)
    end = at + chunk.total_compressed_size
    packed = unpacked = dictionary = keys = 0
    coded, widest = True, 0.0
    while at < end:
        header, length = _header(file, at)
        whole, stored = header.get(2, -1), header.get(3, -1)
        if not isinstance(whole, int) or not isinstance(stored, int) or whole < 0 or stored < 0:
            raise PageError(f"the page at byte {at} has no size")
        values, encoding = _contents(header)
        if header.get(1) == _DICTIONARY_PAGE:
            dictionary, keys = max(dictionary, whole), max(keys, values)
        else:
            unpacked = max(unpacked, whole)
            coded &= encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY)
        if header.get(1) == _DICTIONARY_PAGE or (values and encoding not in (_PLAIN_DICTIONARY, _RLE_DICTIONARY)):
            widest = max(widest, whole / max(values, 1))
        packed = max(packed, stored)
        at += length + stored
    return Pages(packed, unpacked, dictionary, keys, coded and keys > 0, widest)


def _contents(header: dict[int, Any]) -> tuple[int, int]:
    """(values, encoding) of a page."""
    for place, encoding in ((5, 2), (7, 2), (8, 4)):
        found = header.get(place)
        if isinstance(found, dict) and isinstance(found.get(1), int):
            return max(0, found[1]), found.get(encoding, -1)
    return 0, -1


def _header(file: BinaryIO, at: int) -> tuple[dict[int, Any], int]:
    """({field number: value}, bytes) of the header at byte `at`."""
    size = _HEADER
    while True:
        file.seek(at)
        data = file.read(size)
        try:
            reader = _Compact(data)
            return reader.struct(0), reader.at
        except IndexError:
            if len(data) < size or size >= _LONGEST:
                raise PageError(f"no page begins at byte {at}") from None
            size *= 16


class _Compact:
    """Values of Thrift's compact protocol; IndexError beyond the end of `data`."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def struct(self, depth: int) -> dict[int, Any]:
        found: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._zigzag()
            found[number] = self._value(kind & 15, depth + 1, alone=True)
        return found

    def _value(self, kind: int, depth: int, *, alone: bool) -> Any:
        if depth > _DEEPEST:
            raise PageError("structures too deep for a page header")
        if kind in (_TRUE, _FALSE):  # for a field the kind is the value; in a list it is a byte
            return kind == _TRUE if alone else self._byte() == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind < _DOUBLE:
            return self._zigzag()
        if kind in (_DOUBLE, _BINARY):
            return self._skip(8 if kind == _DOUBLE else self._varint())
        if kind == _STRUCT:
            return self.struct(depth)
        if kind in (_LIST, _SET):
            head = self._byte()
            for _ in range(self._varint() if head >> 4 == 15 else head >> 4):
                self._value(head & 15, depth + 1, alone=False)
            return None
        raise PageError(f"a value of kind {kind}, which page headers do not have")

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self._data):
            raise IndexError

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found
            if shift > 63:
                raise PageError("a number too long for a page header")

    def _zigzag(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)

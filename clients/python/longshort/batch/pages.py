"""Sizes of a Parquet file's pages, which pyarrow reads whole, from their headers in Thrift's compact protocol."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

# Thrift's types.
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
# Fields of a PageHeader.
_UNCOMPRESSED_BYTES, _COMPRESSED_BYTES = 2, 3
_MAX_DEPTH = 8


def largest_page(file: BinaryIO, chunk: Any) -> int:
    """The largest uncompressed bytes of a page of a column chunk. Ends early where the chunk is damaged, which reading
    its rows reports. Raises OSError."""
    begin = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        begin = min(begin, chunk.dictionary_page_offset)
    place, end, largest = begin, begin + chunk.total_compressed_size, 0
    while place < end:
        file.seek(place)
        try:
            fields = _struct(file, 0)
            largest = max(largest, fields[_UNCOMPRESSED_BYTES])
            stored = fields[_COMPRESSED_BYTES]
        except (EOFError, KeyError):
            break
        if stored < 0:
            break
        place = file.tell() + stored
    return largest


def _struct(file: BinaryIO, depth: int) -> dict[int, int]:
    """Reads a struct, and returns its fields with 32-bit integers."""
    if depth > _MAX_DEPTH:
        raise EOFError("nested too deeply")
    fields: dict[int, int] = {}
    id = 0
    while (head := _byte(file)) & 15 != _STOP:
        type, delta = head & 15, head >> 4
        id = id + delta if delta else _zigzag(_varint(file))
        if type == _I32:
            fields[id] = _zigzag(_varint(file))
        elif type not in (_TRUE, _FALSE):
            _skip(file, type, depth)
    return fields


def _skip(file: BinaryIO, type: int, depth: int) -> None:
    if type in (_TRUE, _FALSE, _BYTE):
        _byte(file)
    elif type in (_I16, _I32, _I64):
        _varint(file)
    elif type == _DOUBLE:
        file.seek(8, os.SEEK_CUR)
    elif type == _BINARY:
        file.seek(_varint(file), os.SEEK_CUR)
    elif type == _STRUCT:
        _struct(file, depth + 1)
    else:
        raise EOFError(f"page headers have no type {type}")


def _byte(file: BinaryIO) -> int:
    read = file.read(1)
    if not read:
        raise EOFError("the header is truncated")
    return read[0]


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = _byte(file)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise EOFError("the number is too long")


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)

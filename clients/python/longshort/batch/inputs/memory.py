"""How a run divides its memory."""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass

DEFAULT_MEMORY = 512 << 20
_MIN_MEMORY = 256 << 20
_MAX_ROW_BYTES = 256 << 20
# mallopt's M_MMAP_THRESHOLD of glibc, and its value.
_MMAP_THRESHOLD = -3
_MAPPED_BYTES = 1 << 20


def return_freed_blocks() -> None:
    """Has glibc return each large block to the system when it is freed. By default, each thread's arena keeps some:
    100 MB and more of the pages of Parquet files that several threads read."""
    with contextlib.suppress(AttributeError, OSError):  # other C libraries
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES)


@dataclass(frozen=True, slots=True)
class Memory:
    """The shares are such that the program with its libraries (about 100 MiB), and copies of a row or page in a few
    forms at a time, have room, too."""

    # Upper bound of the process's memory.
    bytes: int = DEFAULT_MEMORY

    def __post_init__(self) -> None:
        if self.bytes < _MIN_MEMORY:
            raise ValueError(f"memory is {self.bytes} bytes; it must be at least {_MIN_MEMORY} (256MB)")

    @property
    def row_bytes(self) -> int:
        """Maximum bytes of a row. Longer ones are errors. A gRPC message has at most 2 GiB."""
        return min(_MAX_ROW_BYTES, self.bytes // 32)

    @property
    def parsed_bytes(self) -> int:
        """Maximum bytes of the objects of one row of JSON lines. Two rows may be parsed at a time."""
        return self.bytes // 8 * 3

    @property
    def page_bytes(self) -> int:
        """Maximum bytes of a page of a Parquet file."""
        return self.bytes // 16

    @property
    def ahead_bytes(self) -> int:
        """Maximum bytes of shards that are read but not written."""
        return self.bytes // 16

    @staticmethod
    def for_page(size: int) -> str:
        """The option that has room for a page of this size."""
        return f"{-(-16 * size >> 20)}MB"

    def check_shards(self, rows: int, bytes: int) -> None:
        """Raises ValueError for shards that are too large."""
        most = self.bytes // 16
        if bytes > most or rows << 10 > most:
            raise ValueError(
                f"shard_rows is {rows} and shard_bytes is {bytes}; with memory={self.bytes} they must be at most"
                f" {most >> 10} and {most}"
            )

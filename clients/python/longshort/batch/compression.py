"""Reads a compressed file as the bytes that it stands for."""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, cast

import zstandard

from longshort.batch.failures import InputDamaged

# By the end of a file's name.
ENDINGS = {".gz": "gz", ".zst": "zst", ".bz2": "bz2", ".xz": "xz"}
# A zstd frame needs as much memory as its window. 128 MiB is that of `zstd --long` and of `zstd --ultra -22`.
MAX_WINDOW_BYTES = 128 << 20
_XZ_MEMORY_BYTES = 256 << 20
_BUFFER_BYTES = 1 << 20
# Compressed bytes that are read, and decompressed, at a time. The limit is small because they may expand a lot.
_STORED_BYTES = 4 << 10
# Of zstd and gzip, whose decompressors take no limit of what they return: 512 bytes of zstd may be 16 MiB.
_STEP_BYTES = 512
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# The last three of the four bytes with which a frame of other data begins. Their first is 0x50 to 0x5f.
_SKIPPED_MAGIC = b"\x2a\x4d\x18"
_ERRORS = (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error, zstandard.ZstdError)


def uncompressed(stored: BinaryIO, compression: str) -> BinaryIO:
    """The content of a file. `compression`: "gz", "zst", "bz2", "xz" or "". Its methods raise InputDamaged."""
    if not compression:
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, stored), _BUFFER_BYTES))
    return cast(BinaryIO, io.BufferedReader(_Frames(stored, *_FRAMES[compression]), _BUFFER_BYTES))


class CompressedDamaged(InputDamaged):
    """Compressed bytes are damaged, or end too early."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the compressed file is damaged from here on: {reason}")
        self.reason = reason


def check_zstd_frame(head: bytes) -> None:
    """Raises ValueError for a frame that is not read: its window is too large, or it needs a dictionary.

    head  the first bytes of the frame
    """
    while head[1:4] == _SKIPPED_MAGIC and head[0] & 0xF0 == 0x50 and len(head) >= 8:
        head = head[8 + int.from_bytes(head[4:8], "little") :]
    if not head.startswith(_ZSTD_MAGIC):
        return
    try:
        frame = zstandard.get_frame_parameters(head)
    except zstandard.ZstdError:  # truncated, or damaged
        return
    if frame.dict_id:
        raise ValueError(
            f"it was compressed with the zstd dictionary {frame.dict_id}, which it does not contain: decompress it by"
            " `zstd -D DICTIONARY -d`"
        )
    if frame.window_size > MAX_WINDOW_BYTES:
        raise ValueError(
            f"its zstd window has {frame.window_size >> 20} MiB; at most {MAX_WINDOW_BYTES >> 20} MiB are read:"
            " compress it again, by `zstd -dc --long=31 FILE | zstd --long=27 -o NEW`"
        )


def _gzip_member(_: bytes) -> Any:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)


def _zstd_frame(head: bytes) -> Any:
    check_zstd_frame(head)
    return zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()


def _bzip2_stream(_: bytes) -> Any:
    return bz2.BZ2Decompressor()


def _xz_stream(_: bytes) -> Any:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES)


# What makes a decompressor of one frame from its first bytes, and the bytes that may follow a frame.
_FRAMES: dict[str, tuple[Callable[[bytes], Any], bytes]] = {
    "gz": (_gzip_member, b"\0"),
    "zst": (_zstd_frame, b""),
    "bz2": (_bzip2_stream, b""),
    "xz": (_xz_stream, b"\0"),
}


class _Frames(io.RawIOBase):
    """Reads consecutive frames of zstd, members of gzip, or streams of bzip2 or xz. From a truncated file, it reads
    every byte up to the cut. gzip's own reader below a buffer loses up to a buffer there, and zstandard's does not
    report the truncation."""

    def __init__(self, stored: BinaryIO, begin: Callable[[bytes], Any], padding: bytes) -> None:
        self._stored = stored
        self._begin = begin
        self._padding = padding
        self._compressed = b""
        self._text = memoryview(b"")
        self._frame: Any = None
        self._offset = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        """How many bytes of the content were read."""
        return self._offset

    def readinto(self, buffer: Any) -> int:
        """Returns 0 at the end. Raises InputDamaged, also if the end is within a frame; OSError of the file."""
        while not self._text:
            if not self._compressed and self._needs_input():
                self._compressed = self._stored.read(_STORED_BYTES)
                if not self._compressed:
                    if self._frame is not None:
                        raise CompressedDamaged("it is truncated")
                    return 0
            if self._frame is None:
                self._compressed = self._compressed.lstrip(self._padding) if self._padding else self._compressed
                if not self._compressed:
                    continue
            self._decompress()
        count = min(len(buffer), len(self._text))
        buffer[:count], self._text = self._text[:count], self._text[count:]
        self._offset += count
        return count

    def _needs_input(self) -> bool:
        return bool(self._frame is None or getattr(self._frame, "needs_input", True))

    def _decompress(self) -> None:
        try:
            if self._frame is None:
                self._frame = self._begin(self._compressed)
            if hasattr(self._frame, "needs_input"):  # bzip2 and xz keep the input that exceeds the limit
                self._text = memoryview(self._frame.decompress(self._compressed, _BUFFER_BYTES))
                self._compressed = b""
            else:
                step, self._compressed = self._compressed[:_STEP_BYTES], self._compressed[_STEP_BYTES:]
                self._text = memoryview(self._frame.decompress(step))
        except _ERRORS as error:
            raise CompressedDamaged(str(error)) from None
        if self._frame.eof:
            self._compressed, self._frame = self._frame.unused_data + self._compressed, None

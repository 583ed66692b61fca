"""Reads a compressed file as the bytes that it stands for."""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, cast

import zstandard

from longshort.batch.inputs.zstd_frames import FrameReader
from longshort.batch.report.failures import InputDamaged

# By the end of a file's name.
ENDINGS = {".gz": "gz", ".zst": "zst", ".bz2": "bz2", ".xz": "xz"}
_XZ_MEMORY_BYTES = 256 << 20
_BUFFER_BYTES = 1 << 20
# Compressed bytes that are read, and decompressed, at a time. The limit is small because they may expand a lot.
_STORED_BYTES = 4 << 10
# Of zstd and gzip, whose decompressors take no limit of what they return: 512 bytes of zstd may be 16 MiB.
_STEP_BYTES = 512
# How many bytes of a frame, or all, its decompressor gets at its beginning.
_HEAD_BYTES = 18
_ERRORS = (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error, zstandard.ZstdError)


def uncompressed(stored: BinaryIO, compression: str) -> BinaryIO:
    """The content of a file. `compression`: "gz", "zst", "bz2", "xz" or "". Its methods raise InputDamaged."""
    if not compression:
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, stored), _BUFFER_BYTES))
    return cast(BinaryIO, io.BufferedReader(unbuffered(stored, compression), _BUFFER_BYTES))


def unbuffered(stored: BinaryIO, compression: str) -> io.RawIOBase:
    """The content of a compressed file. A read returns what there is before damage, which a buffer above it loses."""
    begin, padding = _FRAMES[compression]
    return _Frames(stored, begin(), padding)


class CompressedDamaged(InputDamaged):
    """Compressed bytes are damaged, or end too early."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the compressed file is damaged from here on: {reason}")
        self.reason = reason


def _gzip_member(_: bytes) -> Any:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)


def _bzip2_stream(_: bytes) -> Any:
    return bz2.BZ2Decompressor()


def _xz_stream(_: bytes) -> Any:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES)


# For each file: what makes a decompressor of one frame from its first bytes; and the bytes that may follow a frame.
_FRAMES: dict[str, tuple[Callable[[], Callable[[bytes], Any]], bytes]] = {
    "gz": (lambda: _gzip_member, b"\0"),
    "zst": (lambda: FrameReader().begin, b""),
    "bz2": (lambda: _bzip2_stream, b""),
    "xz": (lambda: _xz_stream, b"\0"),
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
            if self._frame is None:
                self._read_head()
                if not self._compressed:
                    return 0
            elif not self._compressed and getattr(self._frame, "needs_input", True):
                self._compressed = self._stored.read(_STORED_BYTES)
                if not self._compressed:
                    raise CompressedDamaged("it is truncated")
            self._decompress()
        count = min(len(buffer), len(self._text))
        buffer[:count], self._text = self._text[:count], self._text[count:]
        self._offset += count
        return count

    def _read_head(self) -> None:
        """Reads the first bytes of the next frame, or to the end of the file."""
        self._compressed = self._compressed.lstrip(self._padding)
        while len(self._compressed) < _HEAD_BYTES and (read := self._stored.read(_STORED_BYTES)):
            self._compressed = (self._compressed + read).lstrip(self._padding)

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

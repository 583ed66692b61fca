"""Frames of zstd files: which are read, and the dictionary that a file may begin with.

A dictionary frame is a skippable frame with the magic number 0x184D2A5D, whose content is a dictionary, compressed by
zstd or not (IIPC's "WARC Zstandard Compression"). The frames behind it may need it.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import zstandard

# A zstd frame needs as much memory as its window. 128 MiB is that of `zstd --long` and of `zstd --ultra -22`.
MAX_WINDOW_BYTES = 128 << 20
# Usual dictionaries have up to 1 MiB.
_MAX_DICTIONARY_BYTES = 16 << 20
_MAGIC = b"\x28\xb5\x2f\xfd"
# The last three of the four bytes with which a skippable frame begins. Their first is 0x50 to 0x5f.
_SKIPPABLE_MAGIC = b"\x2a\x4d\x18"
_DICTIONARY_FRAME_MAGIC = b"\x5d" + _SKIPPABLE_MAGIC
_DICTIONARY_MAGIC = b"\x37\xa4\x30\xec"
# The magic number of a skippable frame, and the bytes of its content.
_SKIPPABLE_HEAD_BYTES = 8


def check_frame(head: bytes) -> None:
    """Raises ValueError for a file whose first frame of data is not read: its window is too large, or it needs a
    dictionary that does not stand before it.

    head  the first bytes of the file
    """
    has_dictionary = False
    while head[1:4] == _SKIPPABLE_MAGIC and head[0] & 0xF0 == 0x50 and len(head) >= _SKIPPABLE_HEAD_BYTES:
        has_dictionary |= _is_dictionary_frame(head)
        head = head[_SKIPPABLE_HEAD_BYTES + _content_bytes(head) :]
    if head.startswith(_MAGIC):
        _check(head, None, has_dictionary)


class FrameReader:
    """Makes the decompressor of each frame of one file from the frame's first bytes."""

    def __init__(self) -> None:
        self._dictionary: zstandard.ZstdCompressionDict | None = None

    def begin(self, head: bytes) -> Any:
        """Raises ValueError for a frame that is not read."""
        if _is_dictionary_frame(head):
            return _DictionaryFrame(head, self._take_dictionary)
        if head.startswith(_MAGIC):
            _check(head, self._dictionary, False)
        decompressor = zstandard.ZstdDecompressor(dict_data=self._dictionary, max_window_size=MAX_WINDOW_BYTES)
        return decompressor.decompressobj()

    def _take_dictionary(self, content: bytes) -> None:
        if content.startswith(_MAGIC):
            reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).stream_reader(io.BytesIO(content))
            content = reader.read(_MAX_DICTIONARY_BYTES + 1)
            _check_dictionary(len(content))
        if not content.startswith(_DICTIONARY_MAGIC):
            raise ValueError("its zstd dictionary is damaged")
        self._dictionary = zstandard.ZstdCompressionDict(content)


class _DictionaryFrame:
    """Collects the content of a dictionary frame. Its interface is that of a decompressor, whose content is empty."""

    def __init__(self, head: bytes, take: Callable[[bytes], None]) -> None:
        _check_dictionary(_content_bytes(head))
        self._all_bytes = _SKIPPABLE_HEAD_BYTES + _content_bytes(head)
        self._read = bytearray()
        self._take = take
        self.unused_data = b""
        self.eof = False

    def decompress(self, compressed: bytes) -> bytes:
        """Raises ValueError if the dictionary is damaged."""
        wanted = self._all_bytes - len(self._read)
        self._read += compressed[:wanted]
        self.unused_data = compressed[wanted:]
        if len(self._read) == self._all_bytes:
            self.eof = True
            self._take(bytes(self._read[_SKIPPABLE_HEAD_BYTES:]))
        return b""


def _is_dictionary_frame(head: bytes) -> bool:
    """Whether a skippable frame has a dictionary. Others are for other programs, and may have the same number."""
    content = head[_SKIPPABLE_HEAD_BYTES:]
    return head.startswith(_DICTIONARY_FRAME_MAGIC) and content.startswith((_MAGIC, _DICTIONARY_MAGIC))


def _content_bytes(head: bytes) -> int:
    return int.from_bytes(head[4:_SKIPPABLE_HEAD_BYTES], "little")


def _check_dictionary(size: int) -> None:
    if size > _MAX_DICTIONARY_BYTES:
        raise ValueError(f"its zstd dictionary has more than {_MAX_DICTIONARY_BYTES >> 20} MiB, which is the limit")


def _check(head: bytes, dictionary: zstandard.ZstdCompressionDict | None, may_need: bool) -> None:
    """`may_need`: whether the frame may need any dictionary, since the file's is not known yet."""
    try:
        frame = zstandard.get_frame_parameters(head)
    except zstandard.ZstdError:  # truncated, or damaged
        return
    if frame.dict_id and not may_need and (dictionary is None or dictionary.dict_id() != frame.dict_id):
        raise ValueError(
            f"it was compressed with the zstd dictionary {frame.dict_id}, which it does not contain: decompress it by"
            " `zstd -D DICTIONARY -d`"
        )
    if frame.window_size > MAX_WINDOW_BYTES:
        raise ValueError(
            f"its zstd window has {frame.window_size >> 20} MiB; at most {MAX_WINDOW_BYTES >> 20} MiB are read:"
            " compress it again, by `zstd -dc --long=31 FILE | zstd --long=27 -o NEW`"
        )

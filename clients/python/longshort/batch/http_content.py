"""The content of an HTTP response as a WARC file has it: without the encodings that its headers name."""

from __future__ import annotations

import zlib
from typing import Any

from warcio.bufferedreaders import ChunkedDataReader  # type: ignore[import-untyped]

# Windows of zlib: gzip's header, zlib's, none. Some servers understand by "deflate" the last.
_WINDOWS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}
# What else is registered. Other words are no encodings: as browsers do, the content is taken as it is.
_NOT_READ = ("br", "compress", "dcb", "dcz", "exi", "pack200-gzip", "x-compress", "zstd")


class NotDecoded(ValueError):
    """Why the content cannot be had."""


def content_of(record: Any, most: int) -> bytes:
    """At the most `most` + 1 bytes of a record's content. Raises NotDecoded."""
    stream = record.raw_stream
    if record.http_headers is None:
        return bytes(stream.read(most + 1))
    # Many crawlers have undone the chunks and left the header: then there are none.
    if _words(record, "Transfer-Encoding") == ["chunked"]:
        stream = ChunkedDataReader(stream, decomp_type=None)
    told = _words(record, "Content-Encoding")
    encodings = [word for word in told if word in _WINDOWS or word in _NOT_READ]
    if not encodings:
        return bytes(stream.read(most + 1))
    if len(encodings) > 1 or encodings[0] in _NOT_READ:
        raise NotDecoded(f'its Content-Encoding is "{", ".join(told)}"; gzip, deflate and none are read')
    return _decoded(stream.read(most + 1), encodings[0], most)


def _words(record: Any, name: str) -> list[str]:
    """Of a header, in small letters."""
    return [word.strip().lower() for word in (record.http_headers.get_header(name) or "").split(",")]


def _decoded(stored: bytes, encoding: str, most: int) -> bytes:
    """Raises NotDecoded."""
    if not stored:
        return b""
    reason = ""
    for windows in _WINDOWS[encoding]:
        decoder = zlib.decompressobj(windows)
        try:
            content = decoder.decompress(stored, most + 1)
        except zlib.error as error:
            reason = str(error)
            continue
        if decoder.eof or len(content) > most:
            return content
        reason = "it ends too early"
    raise NotDecoded(f'its Content-Encoding is "{encoding}", and it is not: {reason}')

"""Decodes the content of an HTTP response in a WARC file."""

from __future__ import annotations

import zlib
from typing import Any

from warcio.bufferedreaders import ChunkedDataReader  # type: ignore[import-untyped]

# zlib's window bits for a gzip header, a zlib header, and none. Some servers send "deflate" without a header.
_WINDOWS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}
# Registered encodings that are not decoded. As in browsers, an unregistered word does not count as an encoding.
_NOT_READ = ("br", "compress", "dcb", "dcz", "exi", "pack200-gzip", "x-compress", "zstd")


class NotDecoded(ValueError):
    """The content cannot be decoded; the message says why."""


def content_of(record: Any, max_bytes: int) -> bytes:
    """At most `max_bytes` + 1 bytes of a record's content. Raises NotDecoded."""
    stream = record.raw_stream
    if record.http_headers is None:
        return bytes(stream.read(max_bytes + 1))
    # Many crawlers decode the chunks but keep the header. The reader passes such content through.
    if _words(record, "Transfer-Encoding") == ["chunked"]:
        stream = ChunkedDataReader(stream, decomp_type=None)
    listed = _words(record, "Content-Encoding")
    encodings = [word for word in listed if word in _WINDOWS or word in _NOT_READ]
    if not encodings:
        return bytes(stream.read(max_bytes + 1))
    if len(encodings) > 1 or encodings[0] in _NOT_READ:
        raise NotDecoded(f'its Content-Encoding is "{", ".join(listed)}"; only gzip and deflate are supported')
    return _decoded(stream.read(max_bytes + 1), encodings[0], max_bytes)


def _words(record: Any, name: str) -> list[str]:
    """The words of a header, in lower case."""
    return [word.strip().lower() for word in (record.http_headers.get_header(name) or "").split(",")]


def _decoded(stored: bytes, encoding: str, max_bytes: int) -> bytes:
    """Raises NotDecoded."""
    if not stored:
        return b""
    reason = ""
    for windows in _WINDOWS[encoding]:
        decoder = zlib.decompressobj(windows)
        try:
            content = decoder.decompress(stored, max_bytes + 1)
        except zlib.error as error:
            reason = str(error)
            continue
        if decoder.eof or len(content) > max_bytes:
            return content
        reason = "it is truncated"
    raise NotDecoded(f'its Content-Encoding is "{encoding}", but it cannot be decoded: {reason}')

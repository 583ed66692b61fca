"""Decodes the content of an HTTP response in a WARC file."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable
from typing import Any

import brotli  # type: ignore[import-untyped]

from longshort.batch.inputs.compression import CompressedDamaged, uncompressed

# zlib's window bits for a gzip header, a zlib header, and none. Some servers send "deflate" without a header.
_WINDOWS = {"gzip": (31,), "deflate": (15, -15)}
_NAMES = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate", "br": "br", "zstd": "zstd"}
# Registered encodings that are not decoded. As in browsers, an unregistered word does not count as an encoding.
_NOT_READ = ("compress", "dcb", "dcz", "exi", "pack200-gzip", "x-compress")
_MAGICS = ((b"\x1f\x8b\x08", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))
# Control characters that text does not have. Compressed content has one in its first bytes.
_NOT_TEXT = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1b")
_LOOKED_AT_BYTES = 1024
_MAX_ENCODINGS = 8
_CHUNK_HEAD = re.compile(rb"[ \t]*([0-9a-fA-F]{1,16})[ \t]*(?:;.*)?\r\n")
_MAX_CHUNK_HEAD_BYTES = 64


class NotDecoded(ValueError):
    """The content cannot be decoded; the message says why."""


def content_of(record: Any, max_bytes: int) -> bytes:
    """At most `max_bytes` + 1 bytes of a record's content. Raises NotDecoded."""
    stream = record.raw_stream
    if record.http_headers is None:
        return bytes(stream.read(max_bytes + 1))
    is_chunked = _words(record, "Transfer-Encoding") == ["chunked"]
    content = _unchunked(stream, max_bytes) if is_chunked else bytes(stream.read(max_bytes + 1))
    listed = _words(record, "Content-Encoding")
    encodings = [word for word in listed if word in _NAMES or word in _NOT_READ]
    if len(encodings) > _MAX_ENCODINGS:
        raise NotDecoded(f"its Content-Encoding has {len(encodings)} encodings; at most {_MAX_ENCODINGS} are decoded")
    for encoding in reversed(encodings or [""]):
        content = _decoded(content, encoding, max_bytes)
    return content


def _unchunked(stream: Any, max_bytes: int) -> bytes:
    """The content of chunks. Many crawlers decode the chunks but keep the header: what is no chunk is content."""
    content = bytearray()
    while (room := max_bytes + 1 - len(content)) > 0:
        head = stream.readline(_MAX_CHUNK_HEAD_BYTES)
        size = _CHUNK_HEAD.fullmatch(head)
        if size is None:
            content += head + stream.read(room)
            break
        chunk = stream.read(min(room, int(size[1], 16)))
        content += chunk
        if len(chunk) < int(size[1], 16) or not chunk:
            break
        if (end := stream.read(2)) != b"\r\n":
            content[-len(chunk) :] = head + chunk + end + stream.read(room)
            break
    return bytes(content[: max_bytes + 1])


def _words(record: Any, name: str) -> list[str]:
    """The words of a header, in lower case."""
    return [word.strip().lower() for word in (record.http_headers.get_header(name) or "").split(",")]


def _decoded(stored: bytes, encoding: str, max_bytes: int) -> bytes:
    """Headers are often wrong: crawlers decode the content and keep the header, or the reverse. The beginning of the
    content is believed rather than the header. Raises NotDecoded."""
    magic = next((name for begin, name in _MAGICS if stored.startswith(begin)), "")
    reason = "only gzip, deflate, br and zstd are supported"
    for name in dict.fromkeys(one for one in (magic, _NAMES.get(encoding, "")) if one):
        try:
            return _DECODERS[name](stored, max_bytes)
        except NotDecoded as error:
            reason = f"it cannot be decoded: {error}"
    if not magic and not _NOT_TEXT.intersection(stored[:_LOOKED_AT_BYTES]):
        return stored
    if not encoding and not magic:
        return stored
    raise NotDecoded(f'its Content-Encoding is "{encoding}", but {reason}')


def _by_zlib(name: str) -> Callable[[bytes, int], bytes]:
    def decode(stored: bytes, max_bytes: int) -> bytes:
        reason = ""
        for windows in _WINDOWS[name]:
            decoder = zlib.decompressobj(windows)
            try:
                content = decoder.decompress(stored, max_bytes + 1)
            except zlib.error as error:
                reason = str(error)
                continue
            if decoder.eof or len(content) > max_bytes:
                return content
            reason = "it is truncated"
        raise NotDecoded(reason)

    return decode


def _by_brotli(stored: bytes, max_bytes: int) -> bytes:
    decoder = brotli.Decompressor()
    content = bytearray()
    try:
        while not decoder.is_finished() and len(content) <= max_bytes:
            more = decoder.process(stored, output_buffer_limit=max_bytes + 1 - len(content))
            if not more and not decoder.is_finished():
                raise NotDecoded("it is truncated")
            content += more
            stored = b""
    except brotli.error as error:
        raise NotDecoded(str(error)) from None
    return bytes(content)


def _by_zstd(stored: bytes, max_bytes: int) -> bytes:
    try:
        return uncompressed(io.BytesIO(stored), "zst").read(max_bytes + 1)
    except CompressedDamaged as error:
        raise NotDecoded(error.reason) from None


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _by_zlib("gzip"),
    "deflate": _by_zlib("deflate"),
    "br": _by_brotli,
    "zstd": _by_zstd,
}

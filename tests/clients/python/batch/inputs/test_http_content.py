"""Records of WARC files whose HTTP headers name encodings: the text is scored, or the row is an error."""

from __future__ import annotations

import gzip
import io
import random
import zlib
from pathlib import Path

import brotli
import longshort.batch
import pytest
import zstandard
from integration.server_process import Server
from longshort.batch.inputs.shards import ShardLimits
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from clients.python.batch.corpus import read_errors
from clients.python.batch.inputs.test_inputs import rows_of
from clients.python.conftest import address

TEXT = b"The cat sat on the mat. " * 40
# One block of deflate, without zlib's header.
BARE = zlib.compress(TEXT)[2:-4]
NOISE = random.Random(1).randbytes(2000)
GZIPPED = gzip.compress(TEXT, mtime=0)


def chunks(content: bytes) -> bytes:
    half = len(content) // 2
    parts = (content[:half], content[half:], b"")
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def write_warc(path: Path, contents: list[tuple[dict[str, str], bytes]]) -> Path:
    """Writes text responses with these headers and bytes."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=path.name.endswith(".gz"))
        for headers, content in contents:
            status = StatusAndHeaders("200 OK", [("Content-Type", "text/plain"), *headers.items()], "HTTP/1.1")
            writer.write_record(
                writer.create_warc_record(
                    "http://a.example", "response", payload=io.BytesIO(content), http_headers=status
                )
            )
    return path


# Headers, and what stands behind them.
READ: dict[str, tuple[dict[str, str], bytes]] = {
    "no header": ({}, TEXT),
    "gzip": ({"Content-Encoding": "gzip"}, GZIPPED),
    "gzip's old name": ({"Content-Encoding": "X-GZIP"}, GZIPPED),
    "deflate": ({"Content-Encoding": "deflate"}, zlib.compress(TEXT)),
    "bare deflate": ({"Content-Encoding": "deflate"}, BARE),
    "identity": ({"Content-Encoding": "identity"}, TEXT),
    "no encoding": ({"Content-Encoding": "utf-8"}, TEXT),
    "br": ({"Content-Encoding": "br"}, brotli.compress(TEXT)),
    "zstd": ({"Content-Encoding": "zstd"}, zstandard.compress(TEXT)),
    "two encodings": ({"Content-Encoding": "gzip, br"}, brotli.compress(GZIPPED)),
    "gzip undone": ({"Content-Encoding": "gzip"}, TEXT),
    "deflate undone": ({"Content-Encoding": "deflate"}, TEXT),
    "br undone": ({"Content-Encoding": "br"}, TEXT),
    "compress undone": ({"Content-Encoding": "compress"}, TEXT),
    "br that is gzip": ({"Content-Encoding": "br"}, GZIPPED),
    "gzip that is zstd": ({"Content-Encoding": "gzip"}, zstandard.compress(TEXT)),
    "gzip without a header": ({}, GZIPPED),
    "chunks of br": ({"Transfer-Encoding": "chunked", "Content-Encoding": "br"}, chunks(brotli.compress(TEXT))),
    "chunks": ({"Transfer-Encoding": "chunked"}, chunks(TEXT)),
    "chunks undone": ({"Transfer-Encoding": "chunked"}, TEXT),
    "chunks of gzip": ({"Transfer-Encoding": "chunked", "Content-Encoding": "gzip"}, chunks(GZIPPED)),
    "chunks of gzip undone": ({"Transfer-Encoding": "chunked", "Content-Encoding": "gzip"}, GZIPPED),
}


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_encodings_are_undone(tmp_path: Path, name: str, kind: str) -> None:
    path = write_warc(tmp_path / name, [READ[kind], ({}, b"behind it")])
    assert [row.document for shard in rows_of(path, ShardLimits()) for row in shard.rows] == [TEXT, b"behind it"]


def test_what_cannot_be_decoded_is_an_error_of_its_row(server: Server, tmp_path: Path) -> None:
    wrong = [
        (
            {"Content-Encoding": "compress"},
            BARE,
            'its Content-Encoding is "compress", but only gzip,',
        ),
        ({"Content-Encoding": "br"}, BARE, 'its Content-Encoding is "br", but it cannot be decoded: '),
        (
            {"Content-Encoding": "br"},
            brotli.compress(NOISE)[:-20],
            'its Content-Encoding is "br", but it cannot be decoded: it is truncated',
        ),
        (
            {"Content-Encoding": "zstd"},
            zstandard.compress(NOISE)[:-20],
            'its Content-Encoding is "zstd", but it cannot be decoded: it is truncated',
        ),
        ({"Content-Encoding": "gzip"}, zlib.compress(TEXT), 'its Content-Encoding is "gzip", but it cannot be decoded'),
        (
            {"Content-Encoding": "gzip"},
            GZIPPED[:-20],
            'its Content-Encoding is "gzip", but it cannot be decoded: it is truncated',
        ),
        ({"Content-Encoding": "deflate"}, NOISE, 'its Content-Encoding is "deflate", but it cannot be decoded: '),
    ]
    contents = [one for headers, content, _ in wrong for one in ((headers, content), ({}, b"good"))]
    path = write_warc(tmp_path / "a.warc.gz", contents)
    summary = longshort.batch.score(str(path), str(tmp_path / "out"), server=address(server))
    assert (summary.rows, summary.errors) == (len(wrong), len(wrong))
    errors = read_errors(tmp_path / "out")
    for error, (place, (_, _, message)) in zip(errors, enumerate(wrong), strict=True):
        assert error["message"].startswith(message)
        assert (error["ordinal"], error["code"], error["url"]) == (2 * place, "INVALID_ARGUMENT", "http://a.example")

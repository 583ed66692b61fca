"""Compressed files as programs make them: WARC files that are compressed as a whole, and zstd frames that are not
read."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import longshort.batch
import pytest
import zstandard
from longshort.batch.inputs import sources
from longshort.batch.inputs.shards import Position, ShardLimits

from clients.python.batch.inputs.test_inputs import TEXTS, rows_of, write_warc

LINE = b'{"text": "a"}\n'


def pieces(content: bytes, compress: Callable[[bytes], bytes] = gzip.compress) -> bytes:
    """Members that begin and end anywhere, as those of bgzip."""
    return b"".join(compress(content[begin : begin + 700]) for begin in range(0, len(content), 700))


WHOLE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": (".gz", gzip.compress),
    "gzip under a plain name": ("", gzip.compress),
    "members of any length": (".gz", pieces),
    "zstd": (".zst", zstandard.compress),
    "bzip2": (".bz2", bz2.compress),
    "xz": (".xz", lzma.compress),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_a_warc_file_that_is_compressed_as_a_whole_is_read(kind: str, tmp_path: Path) -> None:
    ending, compress = WHOLE[kind]
    plain = write_warc(tmp_path / "plain.warc", False)
    path = tmp_path / f"a.warc{ending}"
    path.write_bytes(compress(plain.read_bytes()))
    limits = ShardLimits(rows=6)
    wanted = [row.text_hash for shard in rows_of(plain, limits) for row in shard.rows]
    rows = [row for shard in rows_of(path, limits) for row in shard.rows]
    assert [row.text_hash for row in rows] == wanted and len(wanted) == len(TEXTS)
    assert [row.ordinal for row in rows] == list(range(len(TEXTS)))
    for row in (6, 33, 40):
        rest = rows_of(path, limits, Position(row // 6, row, 100 * row))
        assert [one.text_hash for shard in rest for one in shard.rows] == wanted[row:]


def zstd_blocks(content: bytes) -> bytes:
    """One frame, whose blocks can be decompressed one after the other."""
    compressor = zstandard.ZstdCompressor().compressobj()
    blocks = [
        compressor.compress(content[begin : begin + 700]) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        for begin in range(0, len(content), 700)
    ]
    return b"".join([*blocks, compressor.flush()])


CUT: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": (".gz", pieces),
    "zstd": (".zst", zstd_blocks),
    "xz": (".xz", lambda content: pieces(content, lzma.compress)),
}


@pytest.mark.parametrize("kind", CUT)
def test_one_that_is_cut_short_is_read_to_there(kind: str, tmp_path: Path) -> None:
    ending, compress = CUT[kind]
    plain = write_warc(tmp_path / "plain.warc", False)
    wanted = [row.text_hash for shard in rows_of(plain, ShardLimits()) for row in shard.rows]
    path = tmp_path / f"a.warc{ending}"
    path.write_bytes(compress(plain.read_bytes())[:-200])
    *rows, last = [row for shard in rows_of(path, ShardLimits()) for row in shard.rows]
    assert last.error is not None and "damaged from here on: it is truncated" in last.error.message
    # The last 200 bytes are of less than 2800 bytes of content, in which each row has at least 500.
    assert len(wanted) - 6 <= len(rows)
    assert [row.text_hash for row in rows] == wanted[: len(rows)]
    assert rows_of(path, ShardLimits(), Position(1, len(rows) + 1, path.stat().st_size)) == []


def frame(window_log: int) -> bytes:
    """A frame without content size, as of `zstd --long=N` from a pipe."""
    parameters = zstandard.ZstdCompressionParameters(window_log=window_log, write_content_size=0)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return bytes(compressor.compress(LINE) + compressor.flush())


DICTIONARY = zstandard.ZstdCompressionDict(b"some words that occur often " * 20)
WITH_DICTIONARY = zstandard.ZstdCompressor(dict_data=DICTIONARY).compress(LINE)
# Raw content has no number. This is a frame with the number 7.
NUMBERED = b"\x28\xb5\x2f\xfd\x21\x07" + WITH_DICTIONARY[5:]
SKIPPED = b"\x5d\x2a\x4d\x18\x04\0\0\0abcd"


def test_windows_of_128_mib_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.zst").write_bytes(SKIPPED + frame(27) + SKIPPED + frame(20))
    (shard,) = rows_of(tmp_path / "a.jsonl.zst", ShardLimits())
    assert [row.document for row in shard.rows] == ["a", "a"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (frame(28), r"its zstd window has 256 MiB; at most 128 MiB are read: compress it again, by `zstd -dc"),
        (frame(31), "its zstd window has 2048 MiB"),
        (SKIPPED + frame(30), "its zstd window has 1024 MiB"),
        (NUMBERED, "it was compressed with the zstd dictionary 7, which it does not contain"),
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl.zst", "a.warc.zst"])
def test_a_frame_that_is_not_read_is_refused_at_once(content: bytes, message: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(longshort.batch.Refused, match=f"{name} is not read: {message}"):
        sources.find([str(tmp_path / name)])


def test_a_later_frame_that_is_not_read_ends_the_file_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.zst").write_bytes(frame(20) + frame(28))
    (shard,) = rows_of(tmp_path / "a.jsonl.zst", ShardLimits())
    first, second = shard.rows
    assert first.document == "a"
    assert second.error is not None and "its zstd window has 256 MiB" in second.error.message


def records(path: Path) -> list[bytes]:
    """The records of a WARC file."""
    content = write_warc(path, False).read_bytes()
    return [b"WARC/1.0" + record for record in content.split(b"WARC/1.0")[1:]]


def dictionary_frame(dictionary: zstandard.ZstdCompressionDict, compressed: bool) -> bytes:
    content = zstandard.compress(dictionary.as_bytes()) if compressed else dictionary.as_bytes()
    return b"\x5d\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content


def trained(samples: list[bytes], id: int) -> zstandard.ZstdCompressionDict:
    return zstandard.train_dictionary(8 << 10, samples * 10, dict_id=id)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_a_warc_file_has_its_dictionary_in_its_first_frame(compressed: bool, count: int, tmp_path: Path) -> None:
    """As IIPC's crawlers write it: each record is a frame. Files that were joined have several dictionaries."""
    every = records(tmp_path / "plain.warc")
    wanted = [row.text_hash for shard in rows_of(tmp_path / "plain.warc", ShardLimits()) for row in shard.rows]
    frames = []
    for place in range(count):
        dictionary = trained(every, 77 + place)
        compressor = zstandard.ZstdCompressor(dict_data=dictionary)
        frames += [dictionary_frame(dictionary, compressed), SKIPPED, *map(compressor.compress, every)]
        assert zstandard.get_frame_parameters(frames[-1]).dict_id == 77 + place
    path = tmp_path / "a.warc.zst"
    path.write_bytes(b"".join(frames))
    rows = [row for shard in rows_of(path, ShardLimits()) for row in shard.rows]
    assert [row.text_hash for row in rows] == wanted * count
    rest = rows_of(path, ShardLimits(rows=6), Position(2, 12, 1000))
    assert [row.text_hash for shard in rest for row in shard.rows] == (wanted * count)[12:]


def test_a_dictionary_that_does_not_fit_ends_the_file_with_its_reason(tmp_path: Path) -> None:
    samples = records(tmp_path / "plain.warc")
    one, other = trained(samples, 1), trained(samples, 2)
    lines = zstandard.ZstdCompressor(dict_data=one).compress(LINE * 2)
    damaged = dictionary_frame(one, True)
    for begin, reason in (
        (dictionary_frame(other, False), "the zstd dictionary 1, which it does not contain"),
        (damaged[:50] + bytes(40) + damaged[90:], "damaged from here on: "),
        (dictionary_frame(one, False)[:4] + b"\xff\xff\xff\x7f" + one.as_bytes(), "has more than 16 MiB"),
        (b"\x5d\x2a\x4d\x18\x04\0\0\0\x28\xb5\x2f\xfd", "damaged from here on: "),
    ):
        (tmp_path / "a.jsonl.zst").write_bytes(zstandard.compress(LINE) + begin + lines)
        (shard,) = rows_of(tmp_path / "a.jsonl.zst", ShardLimits())
        first, second = shard.rows
        assert first.document == "a" and second.error is not None and reason in second.error.message


def test_a_dictionary_that_expands_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    content = zstandard.compress(bytes(17 << 20))
    begin = b"\x5d\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content
    (tmp_path / "a.jsonl.zst").write_bytes(begin + zstandard.compress(LINE))
    (shard,) = rows_of(tmp_path / "a.jsonl.zst", ShardLimits())
    assert shard.rows[0].error is not None and "has more than 16 MiB" in shard.rows[0].error.message

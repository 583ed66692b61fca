"""Inputs that were written to stop a run become rows and errors, in bounded time and memory."""

from __future__ import annotations

import dataclasses
import json
import random
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import brotli
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from longshort.batch.inputs import reading, sources
from longshort.batch.inputs.memory import DEFAULT_MEMORY
from longshort.batch.inputs.rows import Columns
from longshort.batch.inputs.shards import Position, ShardLimits, cut
from longshort.batch.output.folders import open_folder
from longshort.batch.output.manifest import INPUTS, Manifest, Run
from longshort.batch.report.failures import Refused

from clients.python.batch.inputs import limited_reader
from clients.python.batch.inputs.test_http_content import READ
from clients.python.batch.inputs.test_http_content import write_warc as write_encoded
from clients.python.batch.inputs.test_inputs import (
    TEXTS,
    bzip2_lines,
    json_lines,
    parquet,
    write_warc,
    xz_lines,
    zstandard_lines,
)
from clients.python.batch.inputs.test_inputs import gzipped as gzipped_lines

MIB = 1 << 20


class LimitedReader:
    """The process of limited_reader.py, begun again after it has died."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def read(self, path: Path) -> dict[str, Any]:
        if self._process is None or self._process.poll() is not None:
            with self._log.open("w") as log:
                command = [sys.executable, "-m", limited_reader.__name__]
                pipe = subprocess.PIPE
                self._process = subprocess.Popen(
                    command, stdin=pipe, stdout=pipe, stderr=log, text=True, cwd=Path(__file__).parents[4]
                )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._log.read_text()[-2000:]
        return json.loads(answer)  # type: ignore[no-any-return]

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedReader]:
    reader = LimitedReader(tmp_path_factory.mktemp("reader") / "log")
    yield reader
    reader.end()


Content = Iterable[bytes]
GOOD_LINE = b'{"text":"a"}\n'


def repeated(begin: bytes, part: bytes, size: int, end: bytes = b"") -> Content:
    yield begin
    block = part * max(1, MIB // len(part))
    for _ in range(size // len(block)):
        yield block
    yield end


def plain(content: Content) -> Content:
    return content


def gzipped(content: Content) -> Content:
    member = zlib.compressobj(1, wbits=31)
    yield from (member.compress(part) for part in content)
    yield member.flush()


def zstd(content: Content) -> Content:
    frame = zstandard.ZstdCompressor(level=1).compressobj()
    yield from (frame.compress(part) for part in content)
    yield frame.flush()


COMPRESSED: dict[str, Callable[[Content], Content]] = {"": plain, ".gz": gzipped, ".zst": zstd}


def record(content: bytes, headers: bytes = b"", kind: bytes = b"conversion", length: object = None) -> bytes:
    size = str(len(content) if length is None else length).encode()
    named = b"WARC/1.0\r\nWARC-Type: " + kind + b"\r\nWARC-Target-URI: http://a.example/\r\n" + headers
    return named + b"Content-Length: " + size + b"\r\n\r\n" + content + b"\r\n\r\n"


def response(headers: bytes, content: bytes, length: object = None) -> bytes:
    begin = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
    return record(begin + headers + b"\r\n" + content, b"", b"response", length)


def nested(depth: int, inner: bytes) -> bytes:
    return b'{"text":"a","x":' + b"[" * depth + inner + b"]" * depth + b"}\n"


WARC_BEGIN = record(b"good") + b"WARC/1.0\r\n"
HEADERS = "DATA_LOSS: the file is damaged from here on: a record's headers have more than 1048576 bytes"
DIGITS = "DATA_LOSS: the file is damaged from here on: a record's Content-Length is \"1111"
DEEP = "INVALID_ARGUMENT: the line is nested too deeply: at most 256 levels are read"
VALUES = "INVALID_ARGUMENT: the values of the line take some "
LONG_LINE = "DATA_LOSS: the file is damaged from here on: a line has more than 1073741824 bytes"
BLANK = "DATA_LOSS: the file is damaged from here on: a run of blank lines has more than 1048576 bytes"
TOO_LARGE = "INVALID_ARGUMENT: the line has "

# Name of the file, content, good rows, the error ("": none), CPU seconds: some ten times what the readers take.
ATTACKS: dict[str, tuple[str, Callable[[], Content], int, str, float]] = {
    "a header without end": ("a.warc", lambda: repeated(WARC_BEGIN + b"X: ", b"a", 64 * MIB), 1, HEADERS, 2),
    "one in gzip": ("a.warc.gz", lambda: repeated(WARC_BEGIN + b"X: ", b"a", 256 * MIB), 1, HEADERS, 2),
    "one in zstd": ("a.warc.zst", lambda: repeated(WARC_BEGIN + b"X: ", b"a", 256 * MIB), 1, HEADERS, 2),
    "headers without end": ("a.warc.gz", lambda: repeated(WARC_BEGIN, b"a:b\r\n", 64 * MIB), 1, HEADERS, 5),
    "HTTP headers without end": (
        "a.warc.gz",
        lambda: repeated(
            record(b"good") + response(b"", b"", 1 << 40).removesuffix(b"\r\n\r\n\r\n"), b"a:b\r\n", 64 * MIB
        ),
        1,
        HEADERS,
        5,
    ),
    "no first line": ("a.warc", lambda: repeated(b"", b"a", 64 * MIB), 0, HEADERS, 2),
    "blank lines between records": (
        "a.warc.gz",
        lambda: repeated(record(b"good"), b"\r\n", 64 * MIB, record(b"good")),
        0,
        HEADERS,
        5,
    ),
    **{
        f"a length of 5,000 digits{ending}": (
            f"a.warc{ending}",
            lambda: [record(b"good"), record(b"x", length="1" * 5000)],
            1,
            DIGITS,
            2,
        )
        for ending in COMPRESSED
    },
    "a length of 5,000 digits at first": ("a.warc.gz", lambda: [record(b"x", length="1" * 5000)], 0, DIGITS, 2),
    "a chunk of 2 GiB": (
        "a.warc.gz",
        lambda: repeated(
            response(b"Transfer-Encoding: chunked\r\n", b"7fffffff\r\n", 1 << 32).removesuffix(b"\r\n\r\n"),
            b"a",
            256 * MIB,
        ),
        0,
        "DATA_LOSS: the file is damaged from here on: a record is truncated",
        10,
    ),
    "many encodings": (
        "a.warc",
        lambda: [response(b"Content-Encoding: " + b"br," * 300_000 + b"\r\n", b"x" * MIB), record(b"good")],
        1,
        "INVALID_ARGUMENT: its Content-Encoding has 300000 encodings; at most 8 are decoded",
        5,
    ),
    "brotli of 1 GiB": (
        "a.warc",
        lambda: [response(b"Content-Encoding: br\r\n", brotli.compress(bytes(256 * MIB), quality=1)), record(b"good")],
        1,
        "INVALID_ARGUMENT: the record has more than 16777216 bytes",
        10,
    ),
    "long URLs": (
        "a.warc.gz",
        lambda: [record(b"", b"WARC-Date: " + b"d" * 1_000_000 + b"\r\n")] * 400,
        400,
        "",
        30,
    ),
    "byte order marks": ("a.jsonl", lambda: repeated(b"", b"\xef\xbb\xbf", 15 * MIB, GOOD_LINE), 1, "", 2),
    "deep lists": ("a.jsonl", lambda: [GOOD_LINE, nested(200_000, b""), GOOD_LINE], 2, DEEP, 2),
    "deep NaN": ("a.jsonl", lambda: [GOOD_LINE, nested(600, b"NaN"), GOOD_LINE], 2, DEEP, 2),
    "NaN that is less deep": ("a.jsonl", lambda: [nested(250, b"NaN")], 1, "", 2),
    "small objects": (
        "a.jsonl",
        lambda: repeated(GOOD_LINE + b'{"text":"a","x":[0', b',{"a":1}', 15 * MIB, b"]}\n" + GOOD_LINE),
        2,
        VALUES,
        10,
    ),
    "token ids": ("a.jsonl", lambda: repeated(b'{"text":[0', b",1234", 15 * MIB, b"]}\n"), 1, "", 20),
    "quotes in a string": ("a.jsonl", lambda: repeated(b'{"text":"', b'\\"{', 15 * MIB, b'"}\n'), 1, "", 10),
    "a number of many digits": ("a.jsonl", lambda: repeated(b'{"text":"a","x":1', b"1", 15 * MIB, b"}\n"), 1, "", 10),
    "a line of 2 GiB": ("a.jsonl.zst", lambda: repeated(GOOD_LINE, b"a", 2048 * MIB), 1, LONG_LINE, 30),
    "a line of 64 MiB": (
        "a.jsonl.gz",
        lambda: repeated(GOOD_LINE, b"a", 64 * MIB, b"\n" + GOOD_LINE),
        2,
        TOO_LARGE,
        5,
    ),
    "blank lines": ("a.jsonl.zst", lambda: repeated(GOOD_LINE, b"\n", 64 * MIB), 1, BLANK, 20),
    "empty members": ("a.jsonl.gz", lambda: [b""] * 50_000 + [GOOD_LINE], 1, "", 20),
    "empty members of WARC": ("a.warc.gz", lambda: [record(b"good")] + [b""] * 50_000 + [record(b"good")], 2, "", 20),
    "empty frames": ("a.jsonl.zst", lambda: [GOOD_LINE] + [b""] * 50_000 + [GOOD_LINE], 2, "", 20),
    "no line at all": ("a.jsonl", lambda: repeated(b"", b"{", 64 * MIB), 0, TOO_LARGE, 5),
}


def lying_parquet(path: Path, values: list[str]) -> None:
    """Says in its footer that its page of `values` has one byte."""
    pq.write_table(pa.table({"text": values}), path, compression="zstd", use_dictionary=False, write_statistics=False)
    size = pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size
    whole = path.read_bytes()
    assert whole.count(varint(2 * size)) > 0
    path.write_bytes(whole.replace(varint(2 * size), varint(2, len(varint(2 * size)))))


def varint(number: int, length: int = 1) -> bytes:
    """A number of Thrift, which may have leading zeros."""
    if number < 128 and length < 2:
        return bytes([number])
    return bytes([number & 127 | 128]) + varint(number >> 7, length - 1)


def test_pages_that_are_larger_than_the_footer_says_are_damage(limited: LimitedReader, tmp_path: Path) -> None:
    for name, values in (("one", ["x" * (128 * MIB)]), ("many", ["x" * (4 * MIB)] * 40)):
        path = tmp_path / f"{name}.parquet"
        lying_parquet(path, values)
        found = limited.read(path)
        assert found["errors"][0].startswith("DATA_LOSS: the file is damaged from here on: row group 0 has pages of 1")
        assert found["rows"] == 1 and found["peak"] < DEFAULT_MEMORY and found["seconds"] < 5


def blank_lines(folder: Path) -> Path:
    (folder / "a.jsonl").write_bytes(GOOD_LINE + b"\n" * (2 * MIB) + GOOD_LINE * 3)
    return folder / "a.jsonl"


def endless_header(folder: Path) -> Path:
    (folder / "a.warc").write_bytes(WARC_BEGIN + b"X: " + b"a" * (2 * MIB) + b"\r\n\r\n" + record(b"good") * 3)
    return folder / "a.warc"


def damaged_group(folder: Path) -> Path:
    path = folder / "a.parquet"
    pq.write_table(pa.table({"text": TEXTS}), path, row_group_size=1, compression="none", use_dictionary=False)
    begin = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    path.write_bytes(path.read_bytes()[:begin] + b"\xff" * 10 + path.read_bytes()[begin + 10 :])
    return path


@pytest.mark.parametrize("make", [blank_lines, endless_header, damaged_group])
def test_a_run_that_goes_on_finds_nothing_behind_damage(make: Callable[[Path], Path], tmp_path: Path) -> None:
    (source,) = sources.sources_of(sources.find([str(make(tmp_path))]))
    (reader,) = reading.open_readers([source], Columns())
    good, damage = cut(0, reader.rows(Position()), ShardLimits(rows=1))
    assert [row.error is None for shard in (good, damage) for row in reader.parse(shard.rows).rows] == [True, False]
    assert [row.row for row in reader.rows(good.next)] == [1]
    assert not list(reader.rows(damage.next))


@pytest.mark.parametrize("damage", [b"{", b"[]", b'{"name":1}', b"[" * 100_000, b"\xff"])
def test_a_damaged_list_of_inputs_is_a_difference(damage: bytes, tmp_path: Path) -> None:
    folder = open_folder(str(tmp_path))
    one = sources.Input("a.jsonl", "jsonl", "", 1, "")
    run = Run("score", {}, {}, [one])
    Manifest(folder).begin(run, alone=True)
    folder.put(INPUTS, damage + b"\n")
    other = dataclasses.replace(run, inputs=[dataclasses.replace(one, name="b.jsonl")])
    with pytest.raises(Refused, match=r"manifest/inputs.jsonl is damaged where it had b\.jsonl"):
        Manifest(folder).begin(other, alone=False)


def test_a_footer_that_has_no_room_is_refused(limited: LimitedReader, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for size in (9 * MIB, 2**32 - 1):
        path.write_bytes(b"PAR1" + bytes(size if size < MIB * 10 else 100) + size.to_bytes(4, "little") + b"PAR1")
        found = limited.read(path)
        assert f"a.parquet has a footer of {size} bytes; at most 8388608 are read" in found["refused"]


def test_a_damaged_footer_is_one_error(limited: LimitedReader, tmp_path: Path) -> None:
    """Most make pyarrow raise an error. An unknown codec makes it end the process. It stands behind a column's path, a
    list of one string, in Thrift's compact protocol."""
    whole = parquet(tmp_path).read_bytes()
    path = b"\x19\x18\x04text"
    place = whole.index(path + b"\x15") + len(path) + 1
    for content, message in (
        (whole.replace(b"text", b"te\xfft"), "the file's footer is damaged: 'utf-8' codec"),
        (whole[:place] + b"\x76" + whole[place + 1 :], "the file's footer is damaged: pyarrow cannot parse it"),
        (whole[:-20], "the file is truncated: it does not end with a footer of Parquet"),
        (whole[:-8] + b"\xff\xff\0\0PAR1", "the file's footer is damaged: it has 65535 bytes, and the file"),
        (b"PAR1", "the file is truncated"),
    ):
        (tmp_path / "b.parquet").write_bytes(content)
        found = limited.read(tmp_path / "b.parquet")
        assert found["rows"] == 1 and found["errors"][0].startswith(f"DATA_LOSS: {message}"), found


LISTS = {
    "in one page": {},
    "in many pages": {"data_page_size": 1000, "write_batch_size": 100_000},
    "in pages of version 2": {"data_page_version": "2.0"},
}


@pytest.mark.parametrize("options", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("column", ["n", "text"])
def test_each_row_that_unpacks_to_too_much_is_an_error(
    column: str, options: dict[str, Any], limited: LimitedReader, tmp_path: Path
) -> None:
    """10 million times the same number are 80 MB. They are a few hundred bytes in the file. The other rows are read,
    except those that stand behind them in their row group."""
    ends = [0, 3, 5, 10_000_005, 10_000_008, 20_000_010, 20_000_010]
    ones = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array([1] * ends[-1]))
    table = pa.table({column: ones} | ({"text": list("abcdef")} if column == "n" else {}))
    table = pa.concat_tables([table, table.slice(0, 2)])
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", row_group_size=6, **options)
    assert (tmp_path / "a.parquet").stat().st_size < 30_000
    found = limited.read(tmp_path / "a.parquet")
    large = [
        error for error in found["errors"] if error.startswith(f'INVALID_ARGUMENT: the lists of "{column}" take up')
    ]
    behind = [error for error in found["errors"] if "it cannot be read, since it is behind a row of which" in error]
    assert (len(large), len(behind), len(found["errors"])) == (2, 2, 4)
    assert "at most 33554432 are read with this --memory. Give at least --memory=1" in large[0]
    assert found["rows"] == 8
    assert found["peak"] < DEFAULT_MEMORY and found["seconds"] < 5


@pytest.mark.parametrize("options", LISTS.values(), ids=LISTS)
def test_many_rows_that_unpack_to_much_together_are_read(
    options: dict[str, Any], limited: LimitedReader, tmp_path: Path
) -> None:
    """As the masks that tokenizers write beside their ids: 200 rows of 100,000 ones are 160 MB."""
    offsets = pa.array(range(0, 20_000_001, 100_000), pa.int32())
    table = pa.table({"text": ["a"] * 200, "mask": pa.ListArray.from_arrays(offsets, pa.array([1] * 20_000_000))})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", **options)
    found = limited.read(tmp_path / "a.parquet")
    assert (found["rows"], found["errors"], found["refused"], found["failed"]) == (200, [], "", "")
    assert found["peak"] < DEFAULT_MEMORY


def test_a_text_file_of_any_size_is_not_read(limited: LimitedReader, tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("wb") as sparse:
        sparse.truncate(64 << 30)
    found = limited.read(tmp_path / "a.txt")
    assert found["rows"] == 1 and found["errors"][0].startswith("INVALID_ARGUMENT: the file has 68719476736 bytes")
    assert found["seconds"] < 1 and found["peak"] < DEFAULT_MEMORY


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_one_error(name: str, limited: LimitedReader, tmp_path: Path) -> None:
    file, content, good, error, seconds = ATTACKS[name]
    compress = next(function for ending, function in reversed(COMPRESSED.items()) if file.endswith(ending))
    parts = content()
    # Each record is a member, unless one of them has no end.
    members = [[part] for part in parts] if isinstance(parts, list) else [parts]
    with (tmp_path / file).open("wb") as written:
        for member in members:
            written.writelines(compress(member))
    found = limited.read(tmp_path / file)
    print(found["seconds"], found["peak"] >> 20)
    assert not found["failed"] and not found["refused"]
    assert len(found["errors"]) == bool(error) and all(one.startswith(error) for one in found["errors"])
    assert found["rows"] == good + bool(error)
    assert found["seconds"] < seconds
    assert found["peak"] < DEFAULT_MEMORY


def text_file(folder: Path) -> Path:
    (folder / "a.txt").write_text("\n".join(TEXTS))
    return folder / "a.txt"


def dictionary_frames(folder: Path) -> Path:
    samples = [record(text.encode()) for text in TEXTS]
    dictionary = zstandard.train_dictionary(4 << 10, samples * 10)
    compressor = zstandard.ZstdCompressor(dict_data=dictionary)
    begin = b"\x5d\x2a\x4d\x18" + len(dictionary.as_bytes()).to_bytes(4, "little") + dictionary.as_bytes()
    (folder / "b.warc.zst").write_bytes(begin + b"".join(map(compressor.compress, samples)))
    return folder / "b.warc.zst"


def http_contents(folder: Path) -> Path:
    return write_encoded(folder / "c.warc", list(READ.values()))


def nested_parquet(folder: Path) -> Path:
    rows = [{"text": text, "x": {"a": [1, 2], "b": text.encode(), "c": None}, "n": 1.5} for text in TEXTS]
    pq.write_table(pa.Table.from_pylist(rows), folder / "b.parquet", compression="zstd", data_page_size=200)
    return folder / "b.parquet"


GOOD: dict[str, Callable[[Path], Path]] = {
    "JSON lines": json_lines,
    "gzip": gzipped_lines,
    "zstd": zstandard_lines,
    "bzip2": bzip2_lines,
    "xz": xz_lines,
    "Parquet": parquet,
    "nested Parquet": nested_parquet,
    "WARC": lambda folder: write_warc(folder / "a.warc", False),
    "WARC in gzip": lambda folder: write_warc(folder / "a.warc.gz", True),
    "WARC in zstd": dictionary_frames,
    "HTTP in WARC": http_contents,
    "text": text_file,
}


def mutate(content: bytes, draw: random.Random) -> bytes:
    """Changes bytes, takes some away, repeats some, cuts the end off, or puts digits or the highest bytes in."""
    begin = draw.randrange(len(content))
    end = min(len(content), begin + draw.randrange(1, 1 << draw.randrange(1, 12)))
    kind = draw.randrange(6)
    if kind == 0:
        changed = bytearray(content)
        for _ in range(draw.randrange(1, 5)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        return bytes(changed)
    if kind == 1:
        return content[:begin]
    changed_part = (b"", content[begin:end] * draw.randrange(2, 20), b"9" * (end - begin), b"\xff" * (end - begin))
    return content[:begin] + changed_part[kind - 2] + content[end:]


def check_mutations(name: str, count: int, limited: LimitedReader, folder: Path) -> None:
    path = GOOD[name](folder)
    whole = path.read_bytes()
    draw = random.Random(name)
    footer_bytes = int.from_bytes(whole[-8:-4], "little") if path.suffix == ".parquet" else 0
    for number in range(count):
        # Every other change of a Parquet file is one of its footer.
        kept = len(whole) - 8 - footer_bytes if footer_bytes and number % 2 else 0
        end = whole[-8:] if kept else b""
        path.write_bytes(whole[:kept] + mutate(whole[kept : len(whole) - len(end)], draw) + end)
        found = limited.read(path)
        assert not found["failed"], f"{number}: {found['failed']}"
        assert found["seconds"] < 2 and found["peak"] < DEFAULT_MEMORY, number
        assert all(len(error) < 1000 for error in found["errors"]), number


@pytest.mark.parametrize("name", GOOD)
def test_changed_files_become_rows_and_errors(name: str, limited: LimitedReader, tmp_path: Path) -> None:
    check_mutations(name, 60, limited, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", GOOD)
def test_many_changed_files_become_rows_and_errors(name: str, limited: LimitedReader, tmp_path: Path) -> None:
    # A damaged footer often ends the process that parses it, and another one begins.
    check_mutations(name, 400 if "Parquet" in name else 2000, limited, tmp_path)

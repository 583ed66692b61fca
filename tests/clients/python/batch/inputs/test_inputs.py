"""Reading of inputs: formats, broken rows, odd files."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import longshort
import longshort.batch
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from integration.server_process import Server
from longshort.batch.inputs import reading, sources
from longshort.batch.inputs.rows import Columns, Rows
from longshort.batch.inputs.shards import Position, ShardLimits, cut
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from clients.python.batch.corpus import read_errors, read_rows, write_jsonl
from clients.python.conftest import address

TEXTS = [f"text {i} " * (1 + i % 5) for i in range(40)]


def json_lines(path: Path) -> Path:
    return write_jsonl(path / "a.jsonl", ({"text": text, "n": i} for i, text in enumerate(TEXTS)))


def gzipped(path: Path) -> Path:
    plain = json_lines(path).read_bytes()
    # Two members: what tools that append to gzip files make.
    (path / "a.jsonl.gz").write_bytes(gzip.compress(plain[:500]) + gzip.compress(plain[500:]))
    return path / "a.jsonl.gz"


def zstandard_lines(path: Path) -> Path:
    plain = json_lines(path).read_bytes()
    one = zstandard.ZstdCompressor()
    (path / "a.jsonl.zst").write_bytes(one.compress(plain[:500]) + one.compress(plain[500:]))
    return path / "a.jsonl.zst"


def parquet(path: Path) -> Path:
    table = pa.table({"n": list(range(len(TEXTS))), "text": TEXTS})
    pq.write_table(table, path / "a.parquet", row_group_size=7)
    return path / "a.parquet"


def write_warc(path: Path, compressed: bool) -> Path:
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=compressed)
        writer.write_record(writer.create_warcinfo_record("a.warc", {"software": "x"}))
        for i, text in enumerate(TEXTS):
            uri, payload = f"http://example.org/{i}", io.BytesIO(text.encode())
            if i % 2:
                headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html; charset=utf-8")], "HTTP/1.1")
                record = writer.create_warc_record(uri, "response", payload=payload, http_headers=headers)
            else:
                record = writer.create_warc_record(
                    uri, "conversion", payload=payload, warc_content_type="text/plain", warc_headers_dict={}
                )
            writer.write_record(record)
            image = StatusAndHeaders("200 OK", [("Content-Type", "image/png")], "HTTP/1.1")
            writer.write_record(
                writer.create_warc_record(uri, "response", payload=io.BytesIO(b"\x89PNG"), http_headers=image)
            )
    return path


def warc(path: Path) -> Path:
    return write_warc(path / "a.warc", False)


def warc_gzipped(path: Path) -> Path:
    return write_warc(path / "a.warc.gz", True)


def bzip2_lines(path: Path) -> Path:
    plain = json_lines(path).read_bytes()
    (path / "a.jsonl.bz2").write_bytes(bz2.compress(plain[:500]) + bz2.compress(plain[500:]))
    return path / "a.jsonl.bz2"


def xz_lines(path: Path) -> Path:
    plain = json_lines(path).read_bytes()
    # Between streams, xz allows zeros.
    (path / "a.jsonl.xz").write_bytes(lzma.compress(plain[:500]) + bytes(8) + lzma.compress(plain[500:]))
    return path / "a.jsonl.xz"


def texts(path: Path) -> Path:
    (path / "texts/inner").mkdir(parents=True)
    for i, text in enumerate(TEXTS):
        (path / "texts" / ("inner" if i >= 20 else "") / f"{i:02d}.txt").write_text(text)
    (path / "texts/.hidden").write_text("x")
    return path / "texts"


def rows_of(place: Path, limits: ShardLimits, start: Position = Position(), columns: Columns = Columns()) -> list[Rows]:  # noqa: B008
    """The rows of each shard."""
    (source,) = sources.sources_of(sources.find([str(place)]))
    (reader,) = reading.open_readers([source], columns)
    return [reader.parse(shard.rows) for shard in cut(0, reader.rows(start), limits, start)]


def as_text(document: Any) -> str:
    return document.decode() if isinstance(document, bytes) else document


KINDS = [json_lines, gzipped, zstandard_lines, bzip2_lines, xz_lines, parquet, warc, warc_gzipped, texts]


@pytest.mark.parametrize("make", KINDS)
def test_every_format_has_its_rows_in_order(make: Callable[[Path], Path], tmp_path: Path) -> None:
    found = [row for shard in rows_of(make(tmp_path), ShardLimits(rows=6)) for row in shard.rows]
    assert [as_text(row.document) for row in found] == TEXTS
    assert [row.ordinal for row in found] == ([0] * 40 if make is texts else list(range(40)))
    assert len({row.text_hash for row in found}) == 40


@pytest.mark.parametrize("make", KINDS)
def test_every_format_goes_on_from_any_shard(make: Callable[[Path], Path], tmp_path: Path) -> None:
    place = make(tmp_path)
    (source,) = sources.sources_of(sources.find([str(place)]))
    limits = ShardLimits(rows=6, bytes=150)
    whole = list(cut(0, reading.open_readers([source], Columns())[0].rows(Position()), limits))
    assert len(whole) > 5
    for shard in whole[:-1]:
        rest = rows_of(place, limits, shard.next)
        assert [row.text_hash for one in rest for row in one.rows] == [
            row.text_hash
            for one in whole[shard.number + 1 :]
            for row in reading.open_readers([source], Columns())[0].parse(one.rows).rows
        ]


def test_the_same_rows_have_the_same_scores_in_every_format(server: Server, tmp_path: Path) -> None:
    with longshort.Client(address(server)) as client:
        wanted = [score.log_likelihood for score in client.score(TEXTS)]
    for make in KINDS:
        folder = tmp_path / make.__name__
        folder.mkdir()
        out = str(folder / "out")
        summary = longshort.batch.score(str(make(folder)), out, server=address(server), shard_rows=6)
        assert (summary.rows, summary.errors) == (40, 0)
        found = read_rows(out)
        assert [row["log_likelihood"] for row in found] == pytest.approx(wanted, abs=1e-4), make.__name__


BROKEN = [
    (b'{"text": 12345678901234567890}', '"text" is the number 12345678901234567890; it must be a string'),
    (b'{"text": 1e400}', '"text" is the number 1e400; it must be a string'),
    (b'{"text": %s}' % (b"9" * 5000), '"text" is a number of 5000 characters; it must be a string'),
    (b"{", "the line is not JSON"),
    (b"[1]", "the line is an array; it must be an object"),
    (b'{"text": "\xff"}', "the line is not UTF-8: byte 10 is 0xff"),
    (b'{"txt": "x"}', 'there is no "text"'),
    (b"null", "the line is null; it must be an object"),
    (b'{"text": 5}', '"text" is a number; it must be a string or a list of token ids'),
    (b'{"text": {}}', '"text" is an object; it must be a string or a list of token ids'),
    (b'{"text": [7, null]}', '"text" is a list with null at index 1; token ids are 32-bit integers'),
    (
        b'{"text": [4294967296]}',
        '"text" is a list with the number 4294967296 at index 0; token ids are 32-bit integers',
    ),
    (b'{"text": "a\\ud800"}', '"text" has an unpaired surrogate at character 1'),
    (b'{"text": NaN}', '"text" is NaN; it must be a string'),
    (b'{"text": [-Infinity]}', '"text" is a list with -Infinity at index 0'),
    (b"[" * 100_000, "nested too deeply"),
    (b'{"text": ""}', "input is empty; it must have at least one token"),
    (b'{"text": [99999]}', "99999"),
]


def test_broken_rows_are_errors_with_their_reason_and_stop_nothing(server: Server, tmp_path: Path) -> None:
    lines: list[Any] = [line for line, _ in BROKEN for line in (line, {"text": "good", "id": 1})]
    path = write_jsonl(tmp_path / "a.jsonl", lines)
    summary = longshort.batch.score(str(path), str(tmp_path / "out"), server=address(server), shard_rows=5)
    assert (summary.rows, summary.errors) == (len(BROKEN), len(BROKEN))
    assert [row["ordinal"] for row in read_rows(tmp_path / "out")] == list(range(1, 2 * len(BROKEN), 2))
    errors = read_errors(tmp_path / "out")
    assert [error["ordinal"] for error in errors] == list(range(0, 2 * len(BROKEN), 2))
    for error, (line, reason) in zip(errors, BROKEN, strict=True):
        assert reason in error["message"], line[:40]
        assert error["code"] == "INVALID_ARGUMENT" and error["input"] == str(path)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        (512 << 20, "the line has 100000013 bytes; at most 16777216 are read: give more --memory"),
        (4 << 30, "the document has 100000000 tokens; the server accepts at most 8388608 (--max-prompt-tokens)"),
    ],
)
def test_a_line_of_100_mb_is_an_error(server: Server, tmp_path: Path, memory: int, message: str) -> None:
    # 100 MB; the server takes 8 MiB.
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": "x"}, {"text": "x" * 100_000_000}, {"text": "y"}])
    summary = longshort.batch.score(str(path), str(tmp_path / "out"), server=address(server), memory=memory)
    assert (summary.rows, summary.errors) == (2, 1)
    assert read_errors(tmp_path / "out")[0]["message"] == message


def test_compressed_files_that_end_too_early_are_read_to_there(server: Server, tmp_path: Path) -> None:
    # Without pattern, so that a piece that is missing is so many rows.
    whole = "".join(json.dumps({"text": os.urandom(20).hex()}) + "\n" for _ in range(2000)).encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(whole)[:-4000])
    (tmp_path / "b.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(whole)[:-20])
    (tmp_path / "d.jsonl.bz2").write_bytes(bz2.compress(whole)[:-20])
    (tmp_path / "e.jsonl.xz").write_bytes(lzma.compress(whole)[:-20])
    write_warc(tmp_path / "c.warc.gz", True)
    cut_short = (tmp_path / "c.warc.gz").read_bytes()
    (tmp_path / "c.warc.gz").write_bytes(cut_short[: len(cut_short) // 2])
    out = tmp_path / "out"
    names = [str(path) for path in sorted(tmp_path.iterdir())]
    longshort.batch.score(names, str(out), server=address(server), carry=[])
    errors = {Path(error["input"]).name: error for error in read_errors(out)}
    assert {error["code"] for error in errors.values()} == {"DATA_LOSS"}
    assert set(errors) == {"a.jsonl.gz", "b.jsonl.zst", "c.warc.gz", "d.jsonl.bz2", "e.jsonl.xz"}
    for name, error in errors.items():
        rows = [row["ordinal"] for row in read_rows(out) if row["input"].endswith(name)]
        # A line may be cut in two, and is then not JSON.
        assert rows == list(range(len(rows))) and error["ordinal"] - len(rows) in (0, 1)
        assert "damaged from here on" in error["message"] or error["message"].startswith("the line is not JSON")


@pytest.mark.parametrize("compressed", [False, True])
def test_a_warc_file_that_ends_anywhere_is_read_to_there(compressed: bool, tmp_path: Path) -> None:
    path = write_warc(tmp_path / "a.warc", compressed)
    whole = path.read_bytes()
    everything = [row.text_hash for shard in rows_of(path, ShardLimits()) for row in shard.rows]
    with path.open("rb") as file:
        records = ArchiveIterator(file)
        begins = [records.get_record_offset() for _ in records]
    for length in range(1, len(whole) - 1, len(whole) // 97):
        path.write_bytes(whole[:length])
        rows = [row for shard in rows_of(path, ShardLimits()) for row in shard.rows]
        good = [row.text_hash for row in rows if row.error is None]
        assert good == everything[: len(good)]
        # A plain record's last bytes are an empty line, without which nothing can be said to be damaged.
        assert len(rows) - len(good) == 1 or any(0 <= begin - length <= 4 for begin in begins[1:]), length


def test_a_warc_file_with_wrong_bytes_is_read_to_there(tmp_path: Path) -> None:
    path = write_warc(tmp_path / "a.warc.gz", True)
    whole = path.read_bytes()
    everything = [row.text_hash for shard in rows_of(path, ShardLimits()) for row in shard.rows]
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(byte ^ 0x55 for byte in whole[middle : middle + 40]) + whole[middle + 40 :])
    rows = [row for shard in rows_of(path, ShardLimits()) for row in shard.rows]
    good = [row.text_hash for row in rows if row.error is None]
    assert 5 < len(good) < 40 and good == everything[: len(good)]
    assert [row.error.code for row in rows if row.error is not None] == [grpc.StatusCode.DATA_LOSS]


def test_empty_files_have_no_rows(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b""))
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "c.parquet")
    (tmp_path / "d.jsonl").write_bytes(b'{"text": "x"}')
    summary = longshort.batch.score(str(tmp_path), str(tmp_path.parent / "empty"), server=address(server))
    assert (summary.rows, summary.errors) == (1, 0)
    assert [name[-1] for name in summary.without_rows] == ["l", "z", "t"]


def test_columns_of_parquet_keep_their_types(server: Server, tmp_path: Path) -> None:
    table = pa.table(
        {
            "when": pa.array([1, 2, None], pa.timestamp("us")),
            "body": ["a b", None, "c d"],
            "tags": [["x"], [], None],
            "raw": [b"\xff", b"", None],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    out = tmp_path / "out"
    summary = longshort.batch.score(str(tmp_path / "a.parquet"), str(out), text="body", server=address(server))
    assert (summary.rows, summary.errors) == (2, 1)
    found = pq.read_table(out / "rows")
    for name in ("when", "tags", "raw"):
        assert found.column(name).to_pylist() == [table.column(name)[i].as_py() for i in (0, 2)]
        assert found.schema.field(name).type == table.schema.field(name).type
    (error,) = read_errors(out)
    assert (error["ordinal"], error["message"], error["tags"]) == (1, 'there is no "body"', [])


@pytest.mark.parametrize("output", ["parquet", "jsonl"])
def test_fields_of_json_are_carried(server: Server, tmp_path: Path, output: Any) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": "a b", "id": "x", "n": {"m": [1]}}, {"text": "c d", "id": 5}])
    for carry, wanted in ((None, [{"id": "x", "n": {"m": [1]}}, {"id": 5}]), (["id"], ["x", 5]), ([], None)):
        out = tmp_path / f"out-{carry}"
        longshort.batch.score(str(path), str(out), carry=carry, output=output, server=address(server))
        rows = read_rows(out)
        if carry is None:
            assert [json.loads(row["fields"]) if output == "parquet" else row["fields"] for row in rows] == wanted
        elif carry:
            assert [row["id"] for row in rows] == (["x", "5"] if output == "parquet" else wanted)
        else:
            assert "fields" not in rows[0] and "id" not in rows[0]


@pytest.mark.parametrize("output", ["parquet", "jsonl"])
def test_a_file_name_that_is_not_utf8_is_escaped_in_the_key(server: Server, tmp_path: Path, output: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/.hidden.jsonl").write_text("{}")
    for name, text in ((b"\xff.jsonl", '{"text": "a"}\n{}\n'), ("\u00fc.txt".encode(), "b")):
        Path(os.fsdecode(os.fsencode(tmp_path / "in") + b"/" + name)).write_text(text)
    out = str(tmp_path / "out")
    for _ in range(2):
        summary = longshort.batch.score(str(tmp_path / "in"), out, server=address(server), output=output, carry=[])
        assert (summary.all_rows, summary.all_errors) == (2, 1)
    assert longshort.batch.verify(out).complete
    keys = [f"{tmp_path}/in/\u00fc.txt", f"{tmp_path}/in/\\xff.jsonl"]
    assert [row["input"] for row in read_rows(out)] == keys
    assert [error["input"] for error in read_errors(out)] == keys[1:]


def test_token_ids_are_documents(server: Server, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [{"text": [5, 6, 7]}])
    pq.write_table(pa.table({"text": [[5, 6, 7]]}), tmp_path / "b.parquet")
    out = tmp_path / "out"
    longshort.batch.score([str(tmp_path / name) for name in ("a.jsonl", "b.parquet")], str(out), server=address(server))
    with longshort.Client(address(server)) as client:
        wanted = client.score([[5, 6, 7]])[0].log_likelihood
    assert [row["log_likelihood"] for row in read_rows(out)] == pytest.approx([wanted, wanted])


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["none.jsonl"], {}, "none.jsonl cannot be read: No such file"),
        (["*.nothing"], {}, "there is no such file"),
        (["a.jsonl", "a.*"], {}, "a.jsonl is given twice: "),
        (["a.jsonl", "../{folder}/a.jsonl"], {}, "a.jsonl is given twice (also as "),
        (["a.jsonl", "link.jsonl"], {}, "link.jsonl is given twice (also as "),
        (["a.parquet"], {"text": "body"}, 'has no column "body"; there are: n, text'),
        (["a.parquet"], {"text": "n"}, 'the column "n" has type int64; it must have strings, bytes or lists'),
        (["b.parquet"], {}, "b.parquet is not read as parquet: its content is plain text. Give it the name of what it"),
        (["d.parquet"], {}, "its content is a pointer of Git LFS (get the file by `git lfs pull`)"),
        (["e.txt"], {}, "e.txt is not read as text: its content is a pointer of Git LFS"),
        (["f.jsonl.gz"], {}, "f.jsonl.gz is not read as jsonl in gzip: its content is plain text. Give it the name"),
        (["g.jsonl.zst"], {}, "g.jsonl.zst is not read as jsonl in zstd: its content is compressed by gzip"),
        (["h.jsonl"], {}, "h.jsonl is not read as jsonl: its content is an HTML page"),
        (["i.warc.xz"], {}, "i.warc.xz is not read as warc in xz: its content is plain text"),
        (["a.parquet"], {"carry": ["text", "input"]}, 'has no column "input"'),
        (["a.txt.gz"], {}, "a text file must be uncompressed"),
        (["c.parquet"], {}, 'the column "token_count" cannot be copied to the output'),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(
    server: Server, tmp_path: Path, names: list[str], options: Any, message: str
) -> None:
    json_lines(tmp_path)
    parquet(tmp_path)
    pq.write_table(pa.table({"token_count": [1], "text": ["x"]}), tmp_path / "c.parquet")
    (tmp_path / "b.parquet").write_bytes(b'{"text":"x"}')
    for name in ("d.parquet", "e.txt"):
        (tmp_path / name).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    (tmp_path / "f.jsonl.gz").write_bytes(b'{"text":"x"}')
    (tmp_path / "g.jsonl.zst").write_bytes(gzip.compress(b'{"text":"x"}'))
    (tmp_path / "h.jsonl").write_bytes(b"\xef\xbb\xbf\n<!DOCTYPE HTML>")
    (tmp_path / "i.warc.xz").write_bytes(b"WARC/1.0")
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"x"))
    with pytest.raises(longshort.batch.Refused) as caught:
        paths = [str(tmp_path / name.format(folder=tmp_path.name)) for name in names]
        longshort.batch.score(paths, str(tmp_path / "out"), server=address(server), **options)
    assert message in str(caught.value)

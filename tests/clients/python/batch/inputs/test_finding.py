"""Which files of folders, patterns and URLs are read: a closed list. The others are counted, or refused by name."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import fsspec
import longshort.batch
import pytest
import zstandard
from integration.server_process import Server
from longshort.batch.inputs import sources
from longshort.batch.report.counts import LeftOut, described_files

from clients.python.conftest import address

LINE = b'{"text": "a"}\n'
READ = ("a.jsonl", "b.ndjson", "c.jsonl.gz", "d.jsonl.bz2", "e.jsonl.xz", "f.jsonl.zst", "g.txt", "in/h.md")
NOT_READ = {
    "_SUCCESS": "_SUCCESS",
    "_metadata": "_metadata",
    ".a.jsonl.crc": ".*.crc",
    "x.json": "*.json",
    "y.JSON": "*.json",
    "a.jsonl.part": "*.part",
    "b.jsonl.tmp": "*.tmp",
    "c.txt~": "*.txt~",
    "d.csv": "*.csv",
    "e.gif": "*.gif",
    "README": "README",
    "f.jsonl.lz4": "*.lz4",
}


def write(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "in").mkdir()
    contents = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
    for name in (*READ, *NOT_READ):
        (folder / name).write_bytes(contents.get(Path(name).suffix, bytes)(LINE))


def found(*arguments: str | Path, **options: str) -> tuple[list[str], dict[str, int]]:
    """The names of the files that are read, without their folder, and the counts of the others."""
    left_out = LeftOut()
    files = sources.find([str(one) for one in arguments], left_out=left_out, **options)  # type: ignore[arg-type]
    return [file.name.rpartition("/")[2] for file in files], dict(left_out.counts)


OUTSIDE = [
    ("corpus", "scored"),
    ("corpus", "corpus.scored"),
    ("corpus", "corpus/.scored"),
    ("corpus", "corpus/_scored"),
    ("corpus/*.jsonl", "corpus/scored"),
    ("corpus/**/*.txt", "corpus/scored"),
    ("corpus/**", "corpus/.scored"),
    ("corpus/*/a.jsonl", "corpus/scored"),
    ("corpus/a.jsonl", "corpus"),
    ("*", "corpus/../."),
    ("memory://corpus", "corpus/scored"),
    ("memory://corpus", "memory://corpus.scored"),
]
WITHIN = [
    ("corpus", "corpus/scored"),
    ("corpus/", "./corpus/deep/scored/"),
    ("corpus", "corpus"),
    ("link", "corpus/scored"),
    ("corpus", "link/scored"),
    ("corpus/**", "corpus/scored"),
    ("corpus/**/*.parquet", "corpus/scored"),
    ("corpus/**/*.jsonl", "corpus/scored"),
    ("corpus/*/*/*.parquet", "corpus/scored"),
    ("file://{here}/corpus", "corpus/scored"),
    ("memory://corpus", "memory://corpus/scored"),
    ("memory://corpus/**", "memory://corpus/deep/scored"),
]


@pytest.mark.parametrize(("given", "out"), [*OUTSIDE, *WITHIN])
def test_an_output_folder_in_an_input_is_refused_at_the_first_run(
    given: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run would read the results of the first. Other runs do not find a server."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "corpus")
    (tmp_path / "link").symlink_to("corpus")
    fsspec.filesystem("memory").pipe_file("/corpus/a.jsonl", LINE)
    given = given.format(here=tmp_path)
    with pytest.raises(Exception) as caught:
        longshort.batch.score(given, out, server="127.0.0.1:1", patience=0.01)
    refused = f"the output folder {out} is in the input {given}: a second run would read its results"
    assert str(caught.value).startswith(refused) == ((given, out) not in OUTSIDE)


WANTED = sorted(Path(name).name for name in READ)


def counted(*names: str) -> dict[str, int]:
    return {label: list(names).count(label) for label in names}


def test_a_folder_has_a_closed_list_of_files(tmp_path: Path) -> None:
    write(tmp_path / "data")
    (tmp_path / "data/.git").mkdir()
    (tmp_path / "data/_temporary").mkdir()
    (tmp_path / "data/_temporary/a.jsonl").write_bytes(LINE)
    names, left_out = found(tmp_path / "data")
    assert names == WANTED
    assert left_out == counted(*NOT_READ.values(), ".git/", "_temporary/")
    assert described_files(left_out).startswith("2 *.json, 1 ") and described_files(left_out).endswith(", and 3 others")


def test_a_pattern_has_the_same_list(tmp_path: Path) -> None:
    write(tmp_path / "data")
    names, left_out = found(tmp_path / "data/*")
    assert names == [name for name in WANTED if name != "h.md"]
    assert left_out == counted(*(label for label in NOT_READ.values() if label != ".*.crc"), "in/")
    names, left_out = found(tmp_path / "data/**/*")
    assert names == WANTED
    (tmp_path / "data/_temporary").mkdir()
    (tmp_path / "data/_temporary/a.jsonl").write_bytes(LINE)
    names, left_out = found(tmp_path / "data/**/*.jsonl")
    assert not [name for name in names if "_temporary" in name] and left_out
    # A pattern that names the beginning of hidden files means them.
    (tmp_path / "data/_x.jsonl").write_bytes(LINE)
    assert found(tmp_path / "data/_*.jsonl") == (["_x.jsonl"], {})


def test_a_url_has_the_same_list(tmp_path: Path) -> None:
    write(tmp_path / "data")
    store = fsspec.filesystem("memory")
    store.put(str(tmp_path / "data"), "/finding", recursive=True)
    store.pipe_file("/finding/.cache/a.jsonl", LINE)
    try:
        names, left_out = found("memory://finding")
        assert names == WANTED and left_out == counted(*NOT_READ.values(), "*.jsonl")
        names, left_out = found("memory://finding/*")
        assert names == [name for name in WANTED if name != "h.md"]
        assert left_out.items() >= counted(*NOT_READ.values(), "in/").items()
    finally:
        store.rm("/finding", recursive=True)


def test_a_format_makes_all_complete_files_inputs(tmp_path: Path) -> None:
    for name in ("a.json", "b", "_SUCCESS", ".c", "d.part"):
        (tmp_path / name).write_bytes(LINE)
    assert found(tmp_path, format="jsonl") == (["a.json", "b"], counted("_SUCCESS", ".c", "*.part"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", LINE, "a.json is not read, since its name has none of these endings: .jsonl"),
        ("_SUCCESS", b"", "_SUCCESS is not read, since its name has none"),
        ("a.jsonl.part", LINE, "a.jsonl.part is not read, since its name has none"),
        ("a.json.bz2", bz2.compress(LINE), "a.json.bz2 is not read, since"),
        ("a.txt", gzip.compress(LINE, mtime=0), "its content is compressed by gzip"),
        ("a.txt", b"%PDF-1.7", "its content is a PDF file"),
        ("a.jsonl", bz2.compress(LINE), "its content is compressed by bzip2"),
        ("a.jsonl", lzma.compress(LINE), "its content is compressed by xz"),
        ("a.jsonl", zstandard.compress(LINE), "its content is compressed by zstd"),
        ("a.jsonl", b"PAR1", "its content is a Parquet file"),
        ("a.txt.xz", lzma.compress(LINE), "a text file must be uncompressed"),
    ],
)
def test_a_file_that_is_something_else_is_refused(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(longshort.batch.Refused, match=message.replace(".", r"\.")):
        sources.find([str(tmp_path / name)])


def test_a_folder_without_a_file_that_is_read_is_refused(tmp_path: Path) -> None:
    for name in ("a.json", "b.json", "c.csv"):
        (tmp_path / name).write_bytes(LINE)
    for argument in (tmp_path, tmp_path / "*"):
        with pytest.raises(longshort.batch.Refused, match=r"none of its files is read: 2 \*\.json, 1 \*\.csv\. Set --"):
            sources.find([str(argument)])


def test_an_archive_is_refused_whatever_its_format(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.jsonl", LINE)
    for format in ("jsonl", "text"):
        with pytest.raises(longshort.batch.Refused, match="its content is a ZIP archive"):
            sources.find([str(tmp_path / "a.zip")], format)  # type: ignore[arg-type]


def test_linked_folders_are_read_and_loops_noticed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    (tmp_path / "elsewhere/deep/a.jsonl").write_bytes(LINE)
    (tmp_path / "top/sub").mkdir(parents=True)
    (tmp_path / "top/b.jsonl").write_bytes(LINE)
    (tmp_path / "top/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "top/sub/up").symlink_to("../..")
    (tmp_path / "top/sub/self").symlink_to(".")
    with pytest.raises(longshort.batch.Refused, match=r"is given twice \(also as "):
        sources.find([str(tmp_path / "top")])  # "up" leads to "elsewhere", too
    (tmp_path / "top/sub/up").unlink()
    (tmp_path / "top/sub/up").symlink_to("..")
    names, left_out = found(tmp_path / "top")
    assert names == ["b.jsonl", "a.jsonl"]
    assert left_out == {f"{tmp_path}/top/sub/{name} (a link to a folder above it)": 1 for name in ("up", "self")}


def test_links_that_lead_to_folders_in_a_million_ways_are_refused_at_once(tmp_path: Path) -> None:
    for level in range(40):
        (tmp_path / f"tree/{level}").mkdir(parents=True)
        for name in ("one", "other"):
            (tmp_path / f"tree/{level}/{name}").symlink_to(f"../{level + 1}")
    (tmp_path / "tree/40").mkdir()
    for argument in ("tree/0", "tree/0/**/*.jsonl"):
        with pytest.raises(longshort.batch.Refused, match=r"the folder .* is given twice \(also as "):
            sources.find([str(tmp_path / argument)])
    (tmp_path / "loops").mkdir()
    for name in ("one", "other"):
        (tmp_path / "loops" / name).symlink_to(".")
    with pytest.raises(longshort.batch.Refused, match=r"loops/\w+ \(a link to a folder above it\)"):
        sources.find([str(tmp_path / "loops/**/*.jsonl")])


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to("nothing")
    (tmp_path / "b.jsonl").write_bytes(LINE)
    for argument in (tmp_path, tmp_path / "*.jsonl", tmp_path / "a.jsonl"):
        with pytest.raises(longshort.batch.Refused, match="a.jsonl cannot be read: No such file"):
            sources.find([str(argument)])


@pytest.mark.parametrize("argument", ["", "/*/*.jsonl", "/**/*.jsonl"])
def test_a_folder_that_cannot_be_read_is_refused(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests may run as root, who may read any folder."""
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jsonl").write_bytes(LINE)
    scandir = os.scandir

    def closed(path: str) -> object:
        if str(path).rstrip("/").endswith("/closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(longshort.batch.Refused, match=r"the folder .*/closed/? cannot be read: Permission denied"):
        sources.find([f"{tmp_path}{argument}"])


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def device(path: Path) -> None:
    path.symlink_to("/dev/null")


@pytest.mark.parametrize(
    ("make", "message"), [(fifo, "it is a FIFO"), (device, "it is a device"), (listening, "cannot be read")]
)
@pytest.mark.parametrize("argument", ["a.jsonl", "", "*.jsonl"])
def test_what_is_no_regular_file_is_refused(
    make: Callable[[Path], None], message: str, argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    make(Path("a.jsonl"))
    with pytest.raises(longshort.batch.Refused, match=f"a.jsonl cannot be read: .*{message}|a.jsonl {message}"):
        sources.find([argument or "."])


def test_a_summary_names_what_was_not_read(server: Server, tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.gif", "c.gif", "_SUCCESS"):
        (tmp_path / name).write_bytes(LINE)
    command = [sys.executable, "-m", "longshort.batch", "score", str(tmp_path), f"--server={address(server)}"]
    out = tmp_path.parent / f"{tmp_path.name}-out"
    for option in ("--quiet", "--json"):
        done = subprocess.run([*command, f"--out={out}", option], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if option == "--quiet":
            assert done.stdout.endswith(" has 1 rows. Not read: 2 *.gif, 1 _SUCCESS.\n")
        else:
            assert json.loads(done.stdout)["left_out"] == {"*.gif": 2, "_SUCCESS": 1}

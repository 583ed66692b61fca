"""Reads rows of WARC files: the text of records."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any, BinaryIO

import grpc
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.bufferedreaders import DecompressingBufferedReader  # type: ignore[import-untyped]

from longshort.batch.inputs.compression import unbuffered
from longshort.batch.inputs.files import open_input
from longshort.batch.inputs.http_content import NotDecoded, content_of
from longshort.batch.inputs.rows import Columns, Row, Rows, bad, good, text_schema
from longshort.batch.inputs.shards import Position, RawRow
from longshort.batch.inputs.sources import Input, Source
from longshort.batch.report.failures import InputDamaged, Refused

_DAMAGED = "the file is damaged from here on: {}"
# Bytes that are read at a time to find out how a file is compressed.
_DETECTION_BYTES = 64 << 10
# The most bytes of a record's headers, its HTTP headers and the blank lines around them. Crawlers stop at about 64 KiB.
_MAX_HEAD_BYTES = 1 << 20
# The most digits of a Content-Length.
_MAX_DIGITS = 18
_SHOWN = 200  # characters of an error
CARRIED = {
    "url": "WARC-Target-URI",
    "date": "WARC-Date",
    "record_id": "WARC-Record-ID",
    "content_type": "",
}


class _RecordReader(DecompressingBufferedReader):  # type: ignore[misc]
    """warcio's reader of a file. A record's header lines are limited, and damaged gzip is an error."""

    def begin_record(self) -> None:
        self._room = _MAX_HEAD_BYTES

    def read(self, length: int | None = None) -> bytes:
        self.begin_record()  # chunks of HTTP have lines in a record's content
        return bytes(super().read(length))

    def readline(self, length: int | None = None) -> bytes:
        """Raises ValueError beyond the limit."""
        room = self._room + 1 if length is None else min(length, self._room + 1)
        pieces: list[bytes] = []
        while room > 0 and not (pieces and pieces[-1].endswith(b"\n")):
            self._fillbuff()
            if self.empty():
                break
            pieces.append(self.buff.readline(room))
            room -= len(pieces[-1])
        line = b"".join(pieces)
        self._room -= len(line)
        if self._room < 0:
            raise ValueError(f"a record's headers have more than {_MAX_HEAD_BYTES} bytes, which is the limit")
        return line

    def _decompress(self, data: bytes) -> bytes:
        if self.decompressor is None or not self.num_block_read:
            return bytes(super()._decompress(data))
        return bytes(self.decompressor.decompress(data))


class Warc:
    """A row is the decoded text, without HTTP headers, of a record of type conversion, resource or response. Ordinals
    count rows. Offsets are bytes of the file as it is stored, or of its content if its records are not compressed each
    for itself: a resumed run then reads it from its beginning."""

    def __init__(self, source: Source, columns: Columns) -> None:
        self._file: Input = source.files[0]
        self._names = tuple(CARRIED) if columns.carry is None else columns.carry
        self.carried = text_schema(self._names)
        self._max_bytes = columns.memory.row_bytes
        self._offset = 0
        self._stored: BinaryIO | None = None
        # Its compression as a whole; "" if there is none.
        self._compression = _compression(self._file)

    def rows(self, start: Position) -> Iterator[RawRow]:
        """Rows from `start` on. A damaged file ends with a row that is an InputDamaged. Raises OSError."""
        row, self._offset = (0, 0) if self._compression else (start.row, start.offset)
        with open_input(self._file.name) as stored:
            stored.seek(self._offset)
            self._stored = stored
            content_file = unbuffered(stored, self._compression) if self._compression else stored
            records = ArchiveIterator(content_file)
            records.reader = reader = _RecordReader(records.fh)
            reader.begin_record()
            try:
                for record in records:
                    is_text = _is_text(record)
                    is_new = row >= start.row
                    content = _content(record, self._max_bytes) if is_text and is_new else b""
                    # Reads to the record's end, since its offset is not known before.
                    begin, end = records.get_record_offset(), records.offset
                    _check_whole(record, reader.decompressor)
                    reader.begin_record()
                    self._offset = end
                    if is_text and is_new:
                        fields = {name: record.rec_headers.get_header(key) for name, key in CARRIED.items() if key}
                        fields["content_type"] = _content_type(record)
                        size = 0 if isinstance(content, NotDecoded) else len(content)
                        size += sum(len(fields[name] or "") for name in self._names if name in fields)
                        yield RawRow(row, begin, end, size, (content, fields))
                    row += is_text
                if self._offset < (content_file.tell() if self._compression else self._file.bytes):
                    raise EOFError("it does not end with a record")
            except OSError:
                raise
            except Exception as error:  # broken headers make warcio raise anything
                reason = _DAMAGED.format(str(error)[:_SHOWN])
                damaged = error if isinstance(error, InputDamaged) else InputDamaged(reason)
                # Its end is the file's, so that a resumed run finds no further row.
                if row >= start.row:
                    yield RawRow(row, self._offset, max(self._offset, self._file.bytes), 0, damaged)

    def fields_of_first_rows(self) -> Iterator[Collection[str]]:
        yield CARRIED.keys()

    def read_share(self) -> float:
        """The share of the file that was read so far, 0 to 1."""
        if self._compression and self._stored is not None:
            return 1.0 if self._stored.closed else min(1.0, self._stored.tell() / max(1, self._file.bytes))
        return min(1.0, self._offset / max(1, self._file.bytes))

    def parse(self, raw: Sequence[RawRow]) -> Rows:
        rows: list[Row] = []
        carried: list[dict[str, Any]] = []
        for one in raw:
            if isinstance(one.data, InputDamaged):
                rows.append(bad(self._file.name, one.row, str(one.data), grpc.StatusCode.DATA_LOSS))
                carried.append(dict.fromkeys(self._names))
                continue
            content, fields = one.data
            carried.append({name: fields.get(name) for name in self._names})
            if isinstance(content, NotDecoded):
                rows.append(bad(self._file.name, one.row, str(content)))
            elif len(content) > self._max_bytes:
                message = f"the record has more than {self._max_bytes} bytes, the limit: give more --memory"
                rows.append(bad(self._file.name, one.row, message))
            else:
                rows.append(good(self._file.name, one.row, content))
        return Rows(rows, carried, {name: len(rows) for name in self._names if name not in CARRIED})


def _compression(file: Input) -> str:
    """The compression of a file that is compressed as a whole. Usually each record is a gzip member, which allows to
    begin at any record; programs such as gzip and pigz make other members."""
    if file.compression not in ("", "gz"):
        return file.compression
    try:
        with open_input(file.name) as stored:
            return "gz" if _is_gzipped_as_a_whole(stored) else ""
    except OSError as error:
        raise Refused(f"the input {file.name} cannot be read: {error.strerror or error}") from error


def _is_gzipped_as_a_whole(stored: BinaryIO) -> bool:
    """Whether the first gzip member has more, or less, than the first record."""
    member = zlib.decompressobj(16 + zlib.MAX_WBITS)
    begin, size, record_bytes = b"", 0, None
    compressed = stored.read(_DETECTION_BYTES)
    while compressed and not member.eof:
        try:
            content = member.decompress(compressed, _DETECTION_BYTES)
        except zlib.error:  # uncompressed, or damaged
            return False
        compressed = member.unconsumed_tail or (b"" if member.eof else stored.read(_DETECTION_BYTES))
        if record_bytes is None:
            begin += content
            head, end, _ = begin.partition(b"\r\n\r\n")
            length = re.search(rb"\r\ncontent-length:[ \t]*(\d{1,%d})\s" % _MAX_DIGITS, head + b"\r\n", re.IGNORECASE)
            if not end and len(begin) < _DETECTION_BYTES and not member.eof:
                continue
            if not end or length is None:
                return False
            record_bytes = len(head) + len(end) + int(length[1])
            content = begin
        if content[max(0, record_bytes - size) :].strip(b"\r\n"):
            return True
        size += len(content)
    return member.eof and record_bytes is not None and size < record_bytes


def _content(record: Any, max_bytes: int) -> bytes | NotDecoded:
    try:
        return content_of(record, max_bytes)
    except NotDecoded as error:
        return error


def _content_type(record: Any) -> str:
    headers = record.http_headers if record.http_headers is not None else record.rec_headers
    return (headers.get_header("Content-Type") or "").partition(";")[0].strip().lower()


def _check_whole(record: Any, decompressor: Any) -> None:
    """Raises an error unless a record that was read to its end is complete, and its gzip member, too."""
    length = record.rec_headers.get_header("Content-Length") or ""
    if not length.isdecimal() or len(length) > _MAX_DIGITS:
        raise ValueError(f'a record\'s Content-Length is "{length[:_MAX_DIGITS]}", which is no size')
    if record.raw_stream.limit > 0 or not (decompressor is None or decompressor.eof):
        raise EOFError("a record is truncated")


def _is_text(record: Any) -> bool:
    if record.rec_type == "conversion":
        return True
    if record.rec_type not in ("response", "resource"):
        return False
    kind = _content_type(record)
    return kind.startswith("text/") or kind.endswith(("json", "xml"))

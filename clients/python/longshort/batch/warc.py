"""Reads rows of WARC files: the text of records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import grpc
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from longshort.batch.failures import InputDamaged
from longshort.batch.files import open_input
from longshort.batch.http_content import NotDecoded, content_of
from longshort.batch.inputs import Input, Source
from longshort.batch.rows import Columns, Row, Rows, bad, good, text_schema
from longshort.batch.shards import Position, RawRow

CARRIED = {
    "url": "WARC-Target-URI",
    "date": "WARC-Date",
    "record_id": "WARC-Record-ID",
    "content_type": "",
}


class Warc:
    """A row is the decoded text, without HTTP headers, of a record of type conversion, resource or response. Ordinals
    count rows. Offsets are bytes of the file as it is stored."""

    def __init__(self, source: Source, columns: Columns) -> None:
        self._file: Input = source.files[0]
        self._names = tuple(CARRIED) if columns.carry is None else columns.carry
        self.carried = text_schema(self._names)
        self._max_bytes = columns.memory.row_bytes
        self._offset = 0

    def rows(self, start: Position) -> Iterator[RawRow]:
        """Rows from `start` on. A damaged file ends with a row that is an InputDamaged. Raises OSError."""
        row = start.row
        with open_input(self._file.name) as stored:
            stored.seek(start.offset)
            self._offset = start.offset
            records = ArchiveIterator(stored)
            try:
                for record in records:
                    is_text = _is_text(record)
                    content = _content(record, self._max_bytes) if is_text else b""
                    # Reads to the record's end, since its offset is not known before.
                    begin, end = records.get_record_offset(), records.offset
                    if not _is_whole(record, records.reader.decompressor):
                        raise EOFError("a record is truncated")
                    self._offset = end
                    if is_text:
                        fields = {name: record.rec_headers.get_header(key) for name, key in CARRIED.items() if key}
                        fields["content_type"] = _content_type(record)
                        size = 0 if isinstance(content, NotDecoded) else len(content)
                        yield RawRow(row, begin, end, size, (content, fields))
                        row += 1
                if self._offset < self._file.bytes:
                    raise EOFError("it does not end with a record")
            except OSError:
                raise
            except Exception as error:  # broken headers make warcio raise anything
                damaged = InputDamaged(f"the file is damaged from here on: {error}")
                # Its end is the file's, so that a resumed run finds no further row.
                yield RawRow(row, self._offset, self._file.bytes, 0, damaged)

    def read_share(self) -> float:
        """The share of the file that was read so far, 0 to 1."""
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
        return Rows(rows, carried)


def _content(record: Any, max_bytes: int) -> bytes | NotDecoded:
    try:
        return content_of(record, max_bytes)
    except NotDecoded as error:
        return error


def _content_type(record: Any) -> str:
    headers = record.http_headers if record.http_headers is not None else record.rec_headers
    return (headers.get_header("Content-Type") or "").partition(";")[0].strip().lower()


def _is_whole(record: Any, decompressor: Any) -> bool:
    """Whether a record that was read to its end is complete, and its gzip member, too."""
    length = record.rec_headers.get_header("Content-Length") or ""
    if not length.isdecimal() or record.raw_stream.limit > 0:
        return False
    return decompressor is None or bool(decompressor.eof)


def _is_text(record: Any) -> bool:
    if record.rec_type == "conversion":
        return True
    if record.rec_type not in ("response", "resource"):
        return False
    kind = _content_type(record)
    return kind.startswith("text/") or kind.endswith(("json", "xml"))

"""Reads text files: the content of each is one row."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence

from longshort.batch.inputs.files import open_input
from longshort.batch.inputs.memory import Memory
from longshort.batch.inputs.rows import Columns, Row, Rows, bad, good, text_schema, too_large
from longshort.batch.inputs.shards import Position, RawRow
from longshort.batch.inputs.sources import HASHED_BYTES, Input, Source, changed
from longshort.batch.report.failures import Refused


class TextFiles:
    """Offsets are indices of files in the source. There are no columns to carry."""

    def __init__(self, source: Source, columns: Columns) -> None:
        self._source = source
        self._memory = columns.memory
        self._lacking = columns.carry or ()
        self._read = 0
        self.carried = text_schema(())

    def rows(self, start: Position) -> Iterator[RawRow]:
        for place, file in enumerate(self._source.files[start.row :], start.row):
            self._read += file.bytes
            yield RawRow(place, place, place + 1, file.bytes, file)

    def fields_of_first_rows(self) -> Iterator[Collection[str]]:
        yield ()

    def read_share(self) -> float:
        """The share of the bytes that was read so far, 0 to 1."""
        return min(1.0, self._read / max(1, self._source.bytes))

    def parse(self, raw: Sequence[RawRow]) -> Rows:
        """Raises Refused for a file that has changed."""
        lacking = dict.fromkeys(self._lacking, len(raw))
        return Rows([_row(one.data, self._memory) for one in raw], [{} for _ in raw], lacking)


def _row(file: Input, memory: Memory) -> Row:
    if file.bytes > memory.row_bytes:
        return bad(file.name, 0, too_large("file", file.bytes, memory))
    try:
        with open_input(file.name) as opened:
            content = opened.read()
    except OSError as error:
        raise Refused(f"the input {file.name} can no longer be read: {error.strerror or error}") from error
    head, tail = content[:HASHED_BYTES], content[max(HASHED_BYTES, len(content) - HASHED_BYTES) :]
    if len(content) != file.bytes or hashlib.sha256(head + tail).hexdigest() != file.digest:
        raise changed(file)
    return good(file.name, 0, content)

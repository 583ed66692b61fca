"""Writes shards as files: results as Parquet or JSON lines, errors as JSON lines."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Sequence
from typing import Any, Literal

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from longshort.batch.inputs.arrow_values import as_text, json_text, shown
from longshort.batch.inputs.rows import Row, Rows
from longshort.batch.output import result_columns
from longshort.batch.output.folders import Folder
from longshort.batch.output.manifest import ERRORS, ROWS
from longshort.batch.output.records import Written
from longshort.batch.report.failures import Refused

OutputFormat = Literal["parquet", "jsonl"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = ("parquet", "jsonl")
KEY = pa.schema([("input", pa.string()), ("ordinal", pa.int64()), ("text_hash", pa.string())])


class Output:
    """Thread: any."""

    def __init__(
        self, folder: Folder, format: OutputFormat, command: str, region_tokens: int, carried: pa.Schema
    ) -> None:
        """`carried`: the carried columns of the run."""
        self._folder = folder
        self._format = format
        self._columns = result_columns.columns(command, region_tokens)
        self._left: Collection[str] = ()
        self._carried = carried

    def expect(self, left: Collection[str]) -> None:
        """`left`: files of unfinished shards. Each is removed once its shard is done and does not need it."""
        self._left = left

    def check_carried(self, names: Sequence[str]) -> None:
        """Raises Refused for a carried column with the name of an output column."""
        own = [*KEY.names, *self._columns.names]
        for name in names:
            if name in own:
                raise Refused(
                    f'the column "{name}" cannot be copied to the output, since results have a column of that name:'
                    " name the columns to carry"
                )

    def write(self, name: str, rows: Rows, found: Sequence[dict[str, Any] | None]) -> tuple[Written, ...]:
        """Writes a shard's results, in the order of its rows, and its errors. `found`: None for a row with an error.
        The files are safe when this returns. Raises BatchError."""
        good = [place for place, one in enumerate(found) if one is not None]
        contents = {}
        if good:
            content = self._parquet(rows, good, found) if self._format == "parquet" else self._lines(rows, good, found)
            contents[f"{ROWS}/{name}.{self._format}"] = content
        if len(good) < len(found):
            bad = [place for place, one in enumerate(found) if one is None]
            contents[f"{ERRORS}/{name}.jsonl"] = _errors(rows, bad)
        for left in (f"{ROWS}/{name}.{self._format}", f"{ERRORS}/{name}.jsonl"):
            if left in self._left and left not in contents:
                self._folder.remove(left)
        return tuple(self._put(*one) for one in contents.items())

    def _put(self, name: str, content: bytes) -> Written:
        self._folder.put(name, content)
        return Written(name, len(content), hashlib.sha256(content).hexdigest())

    def _parquet(self, rows: Rows, good: Sequence[int], found: Sequence[dict[str, Any] | None]) -> bytes:
        kept = [rows.rows[place] for place in good]
        table = pa.table(
            {
                "input": pa.array([row.input for row in kept], pa.string()),
                "ordinal": pa.array([row.ordinal for row in kept], pa.int64()),
                "text_hash": pa.array([row.text_hash for row in kept], pa.string()),
            }
        )
        if isinstance(rows.carried, pa.Table):
            for field, column in zip(rows.carried.schema, rows.carried.columns, strict=True):
                table = table.append_column(field, column.take(pa.array(good, pa.int64())))
        else:
            for field in self._carried:
                texts = [as_text(rows.carried[place].get(field.name)) for place in good]
                # Other inputs' columns may have any type.
                has_any = any(text is not None for text in texts)
                column = pa.array(texts, pa.string()).cast(field.type) if has_any else pa.nulls(len(good), field.type)
                table = table.append_column(field, column)
        for field in self._columns:
            values = [(found[place] or {})[field.name] for place in good]
            table = table.append_column(field, result_columns.column(field, values))
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        return buffer.getvalue()

    def _lines(self, rows: Rows, good: Sequence[int], found: Sequence[dict[str, Any] | None]) -> bytes:
        carried = _dicts(rows, good)
        lines = []
        for place, extra in zip(good, carried, strict=True):
            row = rows.rows[place]
            key = {"input": row.input, "ordinal": row.ordinal, "text_hash": row.text_hash}
            lines.append(_line(key | extra | result_columns.json_values(found[place] or {})))
        return b"".join(lines)


def _errors(rows: Rows, bad: Sequence[int]) -> bytes:
    lines = []
    for place, extra in zip(bad, _dicts(rows, bad), strict=True):
        row = rows.rows[place]
        assert row.error is not None
        key = {"input": row.input, "ordinal": row.ordinal, "code": row.error.code.name, "message": row.error.message}
        lines.append(_line(key | {name: value for name, value in extra.items() if name not in key}))
    return b"".join(lines)


def _dicts(rows: Rows, places: Sequence[int]) -> list[dict[str, Any]]:
    if isinstance(rows.carried, pa.Table):
        if not rows.carried.num_columns:
            return [{} for _ in places]
        table = rows.carried.take(pa.array(places, pa.int64()))
        columns = [shown(column) for column in table.columns]
        return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]
    return [rows.carried[place] for place in places]


def _line(value: dict[str, Any]) -> bytes:
    return json_text(value).encode() + b"\n"


def rows_hash(rows: Sequence[Row]) -> str:
    """The hash of the rows' keys and texts, in order."""
    hashed = hashlib.blake2b(digest_size=16)
    for row in rows:
        hashed.update(f"{row.input}\0{row.ordinal}\0{row.text_hash}\n".encode("utf-8", "surrogateescape"))
    return hashed.hexdigest()

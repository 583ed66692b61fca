"""What is written: lines for people, JSON for programs, and how far it is."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from longshort._command import exits
from longshort._proto import inference_pb2, models_pb2, types_pb2
from longshort.errors import code_name

_CLEAR_LINE = "\r\033[K"
_BAR_LENGTH = 20
_SECONDS_BETWEEN_BARS = 0.1


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def tell(text: str) -> None:
    """To standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def message_dict(message: Message) -> dict[str, Any]:
    """With the field names of longshort.v1, and fields of default value."""
    to_dict: Any = json_format.MessageToDict
    try:
        found = to_dict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    except TypeError:  # protobuf before 5.26
        found = to_dict(message, preserving_proto_field_name=True, including_default_value_fields=True)
    return dict(found)


def write_json(value: Message | dict[str, Any]) -> None:
    """One object a line."""
    found = message_dict(value) if isinstance(value, Message) else value
    write(json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n")


def write_named_json(name: str, message: Message) -> None:
    write_json({"name": name, **message_dict(message)})


def write_answer_json(name: str, model: types_pb2.ModelSelector, described: models_pb2.Model, message: Message) -> None:
    """The same with the model that answered, if it is set, and its weights, and without lists that have no elements."""
    named = {"name": name, "model": message_dict(model)} if model.name else {"name": name}
    weights = {"fingerprint": described.fingerprint, "precision": described.precision}
    write_json(_without_empty_lists({**named, **weights, **message_dict(message)}))


def _without_empty_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_empty_lists(inner) for key, inner in value.items() if inner != []}
    return [_without_empty_lists(inner) for inner in value] if isinstance(value, list) else value


def write_table(rows: Sequence[Sequence[str]], indent: int = 0) -> None:
    widths = [max(len(row[i]) for row in rows if len(row) > i) for i in range(max(map(len, rows)))]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        write(" " * indent + "  ".join([*cells, row[-1]]) + "\n")


def quote_bytes(raw: bytes) -> str:
    """As in C, and as text where it is UTF-8."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = ""
        for byte in raw:
            text += chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in "\"'\\" else f"\\x{byte:02x}"
        return f'"{text}"'
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}
    return '"' + "".join(named.get(c, c if c >= " " and c != "\x7f" else f"\\x{ord(c):02x}") for c in text) + '"'


def token_line(token: types_pb2.TokenLogProbability) -> str:
    line = f"{token.log_probability:9.4f} {token.id:6d}  {quote_bytes(token.raw)}\n"
    return line + "".join("    " + token_line(alternative) for alternative in token.alternatives)


def write_classes(heading: str, classification: inference_pb2.Classification) -> None:
    """The heading, then a class a row, likeliest first, with a bar if a person reads it."""
    write(heading + "\n")
    rows = []
    for entry in classification.classes:
        row = [entry.label or f"class {entry.index}", f"{100 * entry.probability:6.2f} %"]
        if sys.stdout.isatty():
            row.append("█" * max(1, math.ceil(entry.probability * _BAR_LENGTH)))
        rows.append(row)
    write_table(rows, 2)
    if classification.logits:
        write("  logits by class:" + "".join(f" {logit:.6g}" for logit in classification.logits) + "\n")


class Progress:
    """A bar in the last line of standard error, if that is a terminal. `total`: 0 if it is not known."""

    def __init__(self, unit: str, total: int) -> None:
        self._unit = unit
        self._total = total
        self._done = 0
        self._begun = time.monotonic()
        self._drawn = 0.0
        self._shown = False
        self._wanted = sys.stderr.isatty() and total != 1
        self._draw()

    def advance(self) -> None:
        self._done += 1
        if not self._shown or time.monotonic() - self._drawn >= _SECONDS_BETWEEN_BARS:
            self._draw()

    def hide(self) -> None:
        if self._shown:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()
        self._shown = False

    def _draw(self) -> None:
        if self._wanted:
            self._drawn = time.monotonic()
            self._shown = True
            text = progress_text(self._done, self._total, self._unit, self._drawn - self._begun)
            sys.stderr.write(_CLEAR_LINE + text)
            sys.stderr.flush()


def progress_text(done: int, total: int, unit: str, elapsed: float) -> str:
    rate = done / elapsed if done and elapsed > 0 else 0.0
    rate_text = f"  {rate:.1f}/s" if rate else ""
    if total == 0 or done > total:
        return f"{done} {unit}{rate_text}"
    filled = _BAR_LENGTH * done // total
    text = f"[{'#' * filled}{'-' * (_BAR_LENGTH - filled)}]  {done}/{total} {unit}{rate_text}"
    return text + (f"  {_time_text((total - done) / rate)} left" if rate else "")


def _time_text(seconds: float) -> str:
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole // 60 % 60:02d} min"


class ItemFailures:
    """Items that failed by themselves: told beside their names, and counted."""

    def __init__(self, unit: str, json: bool) -> None:
        self._unit = unit
        self._json = json
        self._counts: dict[int, int] = {}

    def add(self, name: str, error: types_pb2.ItemError, unread: bool = False) -> None:
        """`unread`: the item's file cannot be read."""
        code = code_name(error.code)
        exit_code = exits.USAGE if unread else exits.of_code(code, error.message)
        self._counts[exit_code] = self._counts.get(exit_code, 0) + 1
        message = error.message.removeprefix(f"{name}: ")
        if self._json:
            told = types_pb2.ItemError()
            told.CopyFrom(error)
            told.message = message
            write_json({"name": name, "error": message_dict(told)})
        else:
            tell(f"{name}: {code}: {message}")

    def summarize(self, total: int) -> int:
        """Tells how many there were; the program's exit code."""
        words = {
            exits.REFUSED: "refused",
            exits.UNAVAILABLE: "not taken by a full server",
            exits.CANCELLED: "failed",
            exits.OTHER: "failed",
            exits.USAGE: "not readable",
        }
        parts = [f"{self._counts[code]} {word}" for code, word in words.items() if code in self._counts]
        if not parts:
            return exits.OK
        tell(f"longshort: of {total} {self._unit}, {', '.join(parts)}")
        for code in (exits.REFUSED, exits.UNAVAILABLE, exits.CANCELLED, exits.OTHER):
            if code in self._counts:
                return exits.OTHER if code == exits.CANCELLED else code
        return exits.USAGE


def item_error(code: str, message: str) -> types_pb2.ItemError:
    return types_pb2.ItemError(code=exits.code_number(code), message=message)

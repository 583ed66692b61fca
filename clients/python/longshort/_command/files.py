"""What the program reads: files, folders, patterns, lines, standard input."""

from __future__ import annotations

import glob
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from longshort._command import output
from longshort._command.exits import UsageError
from longshort.inputs import Document, Text

IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".dib", ".tif", ".tiff")


def is_image(name: str) -> bool:
    return Path(name).suffix.lower() in IMAGE_EXTENSIONS


def collect(arguments: Sequence[str], wanted: Callable[[str], bool], missing_is_an_error: bool = True) -> list[str]:
    """Each argument in order as the files that it stands for: "-", a folder (the wanted files in it and in its
    folders, by name, without hidden ones), a pattern (what it matches), or itself."""
    files: list[str] = []
    for argument in arguments or ["-"]:
        names = [argument]
        if argument != "-" and not os.path.exists(argument):
            if re.search(r"[*?[]", argument):
                names = sorted(glob.glob(argument))
            elif missing_is_an_error:
                names = []
            if not names:
                raise UsageError(f"{argument}: No such file or directory")
        for name in names:
            files += _of_folder(name, wanted) if os.path.isdir(name) else [name]
    return files


def _of_folder(folder: str, wanted: Callable[[str], bool]) -> list[str]:
    found: list[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(place, name) for name in names if not name.startswith(".") and wanted(name)]
    if not found:
        raise UsageError(f"{folder}: there is no such file in this folder")
    return sorted(found)


def read(name: str) -> bytes:
    """The whole of a file, or of standard input for "-". Raises OSError."""
    if name != "-":
        return Path(name).read_bytes()
    if sys.stdin.isatty():
        output.tell("Reading standard input; Ctrl-D ends it.")
    return sys.stdin.buffer.read()


def as_text(content: bytes, ids: bool) -> Text:
    """The bytes as they are; with `ids` the decimal token ids that they list, with white space or commas between.
    Raises ValueError."""
    if not ids:
        return content
    found = []
    for word in re.split(rb"[\s,]+", content.strip(b" \t\r\n,")):
        if not re.fullmatch(rb"[+-]?\d+", word):
            raise ValueError(f'--ids: "{word.decode(errors="replace")}" is not a token id')
        found.append(int(word))
    return found


@dataclass
class NamedDocument:
    """A document, or the code and message of why there is none. `name`: the file, or "file:line" with lines from 1."""

    name: str
    document: Document | None = None
    code: str = ""
    message: str = ""


def file_documents(names: Sequence[str], second_names: Sequence[str], ids: bool) -> Iterator[NamedDocument]:
    """Each file is a document."""
    for place, name in enumerate(names):
        try:
            first = as_text(read(name), ids)
            second = as_text(read(second_names[place]), ids) if second_names else None
            yield NamedDocument(name, first if second is None else (first, second))
        except OSError as error:
            yield NamedDocument(name, code="NOT_FOUND", message=error.strerror or str(error))
        except ValueError as error:
            yield NamedDocument(name, code="INVALID_ARGUMENT", message=str(error))


def line_documents(names: Sequence[str], as_json: bool, pairs: bool, ids: bool) -> Iterator[NamedDocument]:
    """Each line of each file is a document (two with a tab between), or a JSON object with its text. Lines are read
    as they are asked for."""
    for name in names:
        try:
            with _open(name) as file:
                for number, line in enumerate(file, 1):
                    yield _line_document(line, f"{name}:{number}", as_json, pairs, ids)
        except OSError as error:
            yield NamedDocument(name, code="NOT_FOUND", message=error.strerror or str(error))


def _open(name: str) -> BinaryIO:
    if name != "-":
        return open(name, "rb")
    if sys.stdin.isatty():
        output.tell("Reading lines from standard input; Ctrl-D ends it.")
    return sys.stdin.buffer


def _line_document(line: bytes, place: str, as_json: bool, pairs: bool, ids: bool) -> NamedDocument:
    name = place
    try:
        if as_json:
            found = _json_object(line)
            name = found["name"] if isinstance(found.get("name"), str) else place
            texts = [_json_text(found, field) for field in ("text", "second_text")[: 2 if pairs else 1]]
        else:
            texts = _without_end(line).split(b"\t", 1) if pairs else [_without_end(line)]
            if pairs and len(texts) != 2:
                raise ValueError("the line has no tab between two documents")
        documents = [as_text(text, ids) for text in texts]
    except ValueError as error:
        return NamedDocument(name, code="INVALID_ARGUMENT", message=str(error))
    return NamedDocument(name, (documents[0], documents[1]) if pairs else documents[0])


def _without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _json_object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError("the line is not a JSON object")
    return found


def _json_text(found: dict[str, Any], field: str) -> bytes:
    if not isinstance(found.get(field), str):
        raise ValueError(f'the line\'s object has no string "{field}"')
    text: str = found[field]
    return text.encode(errors="surrogatepass")


def count_lines(names: Sequence[str]) -> int:
    """0 if only reading tells."""
    if "-" in names or not sys.stderr.isatty():
        return 0
    try:
        return sum(sum(1 for _ in open(name, "rb")) for name in names)
    except OSError:
        return 0

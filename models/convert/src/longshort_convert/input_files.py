"""The files that the user names: formats that are mistaken for others, and text as Windows and editors write it."""

from __future__ import annotations

import codecs
import json
import re
from pathlib import Path
from typing import Any

from longshort_convert.errors import ConvertError

_HEAD_BYTES = 1024
_TITLE = re.compile(rb"<title[^>]*>\s*(.*?)\s*</title>", re.DOTALL | re.IGNORECASE)


def refuse_other_formats(path: Path) -> None:
    """Raises ConvertError if the file is missing or empty, or contains a known other format."""
    if not path.is_file():
        other = "is a directory" if path.is_dir() else "is not a regular file; write its content to one first"
        raise ConvertError(f"{path}: {other if path.exists() else 'no such file'}")
    with path.open("rb") as file:
        if what := _other_format(file.read(_HEAD_BYTES)):
            raise ConvertError(f"{path}: {what}")


def _other_format(head: bytes) -> str | None:
    if not head:
        return "is empty: the download or the copy has failed"
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    lower = text[:256].lower()
    if lower.startswith((b"version https://git-lfs.", b"version https://hawser.")):
        size = re.search(rb"^size (\d+)", text, re.MULTILINE)
        of = f" of a file of {int(size[1]):,} bytes" if size else ""
        return f"is a Git LFS pointer{of}, not the file itself; fetch it with `git lfs pull`"
    if lower.startswith((b"/annex/objects/", b"../.git/annex/", b".git/annex/")):
        return "is a git-annex pointer, not the file itself; fetch it with `git annex get`"
    if lower.startswith((b"<!doctype html", b"<html", b"<head", b"<!--")):
        title = _TITLE.search(text)
        named = f" ({title[1][:80].decode(errors='replace')!r})" if title else ""
        return f"is an HTML page{named}, not the file itself; the download's address leads to a web page"
    if lower.startswith((b"<?xml", b"<error")):
        return "is an XML document, often a server's error message, not the file itself; download it again"
    if head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c")):
        return "is compressed; unpack it first"
    return None


def read_text(path: Path) -> str:
    """UTF-8 text without a byte order mark, with \\n at the ends of lines that end with \\r\\n.

    Raises ConvertError naming the file, or OSError.
    """
    refuse_other_formats_of_text(path)
    content = path.read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConvertError(f"{path}: is UTF-16 text; save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConvertError(f"{path}: not UTF-8 at byte {error.start}") from error
    return text.replace("\r\n", "\n")


def refuse_other_formats_of_text(path: Path) -> None:
    """As refuse_other_formats, for a text, which may be empty."""
    if path.is_file() and path.stat().st_size == 0:
        return
    refuse_other_formats(path)


def read_json_object(path: Path) -> dict[str, Any]:
    """Raises ConvertError or OSError."""
    text = read_text(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConvertError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ConvertError(f"{path}: not a JSON object")
    return content

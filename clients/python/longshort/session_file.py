"""Files of exported sessions: a sequence of SessionPart messages, each preceded by its length (protobuf's delimited
form, which the C++ client also uses)."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import DecodeError

from longshort._proto import sessions_pb2
from longshort.inputs import selector

# A file, or its path.
File = str | os.PathLike[str] | BinaryIO

# Above the longest part that a server writes. A longer length means that the file is not a session.
_LONGEST_PART = 64 << 20


def write_part(file: BinaryIO, part: sessions_pb2.SessionPart) -> None:
    data = part.SerializeToString()
    length = len(data)
    prefix = bytearray()
    while length > 0x7F:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    file.write(bytes(prefix) + data)


def read_parts(file: BinaryIO, name: str) -> Iterator[sessions_pb2.SessionPart]:
    """Raises ValueError if the file is not a session, or is truncated."""
    while (length := _read_length(file, name)) is not None:
        data = file.read(length)
        try:
            if len(data) == length:
                yield sessions_pb2.SessionPart.FromString(data)
                continue
        except DecodeError:
            pass
        raise _damaged(name)


def _damaged(name: str) -> ValueError:
    return ValueError(f"{name} is not an exported session, or is damaged")


def _read_length(file: BinaryIO, name: str) -> int | None:
    length = shift = 0
    while byte := file.read(1):
        length |= (byte[0] & 0x7F) << shift
        shift += 7
        if length > _LONGEST_PART or shift > 35:
            break
        if byte[0] < 0x80:
            return length
    if shift:
        raise _damaged(name)
    return None


@contextlib.contextmanager
def written(file: File) -> Iterator[BinaryIO]:
    """Opens a file to write a session to. For a path, writes to a temporary file that only its owner can read, and
    renames it when complete. Writes directly to pipes, devices and file objects."""
    if not isinstance(file, (str, os.PathLike)):
        yield file
        return
    path = Path(os.path.realpath(file))
    if path.exists() and not path.is_file():
        with path.open("wb") as opened:
            yield opened
        return
    number, beside = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
    try:
        with os.fdopen(number, "wb") as opened:
            yield opened
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


@contextlib.contextmanager
def opened(file: File) -> Iterator[tuple[BinaryIO, str]]:
    """Opens a file to read a session from. Yields the file and its name."""
    if isinstance(file, (str, os.PathLike)):
        with Path(file).open("rb") as stream:
            yield stream, os.fspath(file)
    else:
        yield file, str(getattr(file, "name", "the file"))


def import_messages(id: str, model: str, file: File) -> Iterator[sessions_pb2.ImportSessionRequest]:
    """Yields the messages of an import. Raises OSError, and ValueError if the file is not an exported session."""
    beginning = sessions_pb2.ImportBeginning(model=selector(model), session_id=id)
    with opened(file) as (stream, name):
        yield sessions_pb2.ImportSessionRequest(beginning=beginning)
        for part in read_parts(stream, name):
            yield sessions_pb2.ImportSessionRequest(part=part)

"""Footers of Parquet files. Some damaged ones make pyarrow end the process that parses them. So a process of its own
parses each first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

from longshort.batch.inputs import footer_parser
from longshort.batch.inputs.memory import Memory
from longshort.batch.report.failures import InputDamaged, Refused

MAGIC = b"PAR1"
# A footer may have this share of memory, since pyarrow parses it whole. Behind it stand its size and MAGIC.
_SHARE = 64
_END_BYTES = 8


def read_footer(name: str, stored: BinaryIO, memory: Memory) -> bytes:
    """The end of a Parquet file from its footer on, behind the file's first bytes: pyarrow reads its metadata. Raises
    InputDamaged for a file that ends otherwise; Refused if the footer is too large; OSError."""
    most = memory.bytes // _SHARE
    whole = stored.seek(0, os.SEEK_END)
    stored.seek(max(0, whole - _END_BYTES))
    end = stored.read(_END_BYTES)
    size = int.from_bytes(end[:4], "little")
    if len(end) < _END_BYTES or not end.endswith(MAGIC):
        raise InputDamaged("the file is truncated: it does not end with a footer of Parquet")
    if size > most:
        raise Refused(
            f"{name} has a footer of {size} bytes; at most {most} are read with this --memory. Give at least"
            f" --memory={-(-_SHARE * size >> 20)}MB, or write the file with fewer row groups"
        )
    if size > whole - _END_BYTES - len(MAGIC):
        raise InputDamaged(f"the file's footer is damaged: it has {size} bytes, and the file {whole}")
    stored.seek(whole - _END_BYTES - size)
    return MAGIC + stored.read(size) + end


class FooterProbe:
    """Has another process parse footers. It begins with the first footer.

    Thread: one at a time.
    """

    def __init__(self) -> None:
        self._parser: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> FooterProbe:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def check(self, footer: bytes) -> None:
        """Raises InputDamaged for a footer that ends the process that parses it."""
        parser = self._parser or self._begin()
        assert parser.stdin is not None
        try:
            parser.stdin.write(len(footer).to_bytes(footer_parser.LENGTH_BYTES, "little") + footer)
            parser.stdin.flush()
        except BrokenPipeError:
            pass
        if not self._is_answered(parser):
            self._end()
            raise InputDamaged("the file's footer is damaged: pyarrow cannot parse it")

    def _begin(self) -> subprocess.Popen[bytes]:
        # -P: the names of this folder's files are no modules. A session of its own gets no Ctrl+C of the terminal.
        self._parser = subprocess.Popen(
            [sys.executable, "-P", str(Path(footer_parser.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if not self._is_answered(self._parser):
            raise RuntimeError(f"{sys.executable} cannot run {footer_parser.__file__}, which parses Parquet's footers")
        return self._parser

    @staticmethod
    def _is_answered(parser: subprocess.Popen[bytes]) -> bool:
        assert parser.stdout is not None
        return bool(parser.stdout.read(1))

    def _end(self) -> None:
        if self._parser is not None:
            self._parser.kill()
            self._parser.communicate()
            self._parser = None

"""Files of options that are no regular files: they are read in bounded time, or refused."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import longshort
import pytest
from integration.server_process import wait_until
from longshort import option_files
from longshort.connection import Connection, Token
from longshort.option_files import read_option_file

from clients.python.batch.corpus import write_jsonl


@contextmanager
def pipe_of(content: bytes) -> Iterator[str]:
    """The path that a shell gives for <(command)."""
    reading, writing = os.pipe()
    try:
        os.write(writing, content)
        os.close(writing)
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def test_a_token_of_a_pipe_is_read_once_for_all_clients() -> None:
    with pipe_of(b"abc\n") as path:
        tokens = [Token(Connection(("localhost:1", "localhost:2"), token_file=path)) for _ in range(2)]
        assert [token.authorization() for token in tokens] == ["Bearer abc"] * 2


@pytest.mark.parametrize("option", ["token_file", "tls_ca"])
def test_a_fifo_without_a_writer_is_an_error(fifo: Path, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(option_files, "_WAIT_SECONDS", 0.1)
    with pytest.raises(ValueError, match=f"{option}={fifo} is a FIFO that no program has written to its end within 0"):
        longshort.Client("localhost:1", **{option: fifo})  # type: ignore[arg-type]


def test_a_writer_that_does_not_end_is_an_error(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(option_files, "_WAIT_SECONDS", 0.1)
    both = os.open(fifo, os.O_RDWR)
    os.write(both, b"abc\n")
    with pytest.raises(ValueError, match="no program has written to its end"):
        read_option_file(fifo, "token_file")
    os.close(both)


def test_other_kinds_of_files_are_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for path, message in (
            (tmp_path, "is a folder; it must be a regular file or a FIFO"),
            (Path("/dev/zero"), "is a device; it must be a regular file or a FIFO"),
            (tmp_path / "socket", "cannot be read: "),
            (tmp_path / "none", "cannot be read: No such file"),
        ):
            with pytest.raises(ValueError, match=f"^tls_key={path} {message}"):
                read_option_file(path, "tls_key")
    (tmp_path / "large").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(ValueError, match="has more than 1048576 bytes, which is the limit"):
        read_option_file(tmp_path / "large", "tls_ca")


def target_of(descriptor: Path) -> Path | None:
    try:
        return descriptor.readlink()
    except FileNotFoundError:  # closed meanwhile
        return None


def test_ctrl_c_ends_the_wait_for_a_fifo(fifo: Path, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": "x"}])
    command = [sys.executable, "-m", "longshort.batch", "score", str(path), f"--out={tmp_path}/out"]
    with subprocess.Popen([*command, f"--token-file={fifo}"], stderr=subprocess.PIPE, text=True) as process:
        descriptors = Path(f"/proc/{process.pid}/fd")
        wait_until(lambda: any(target_of(one) == fifo for one in descriptors.iterdir()))
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 4 and stderr.startswith("longshort-batch: interrupted"), stderr

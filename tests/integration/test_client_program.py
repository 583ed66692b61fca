"""The client program around its commands: what scripts see of it."""

from __future__ import annotations

import subprocess

from integration.server_process import BINARY

CLIENT = BINARY.with_name("longshort")


def test_output_that_cannot_be_written_is_an_error() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([CLIENT, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 5
    assert "standard output" in done.stderr

"""The client program around its commands: what scripts see of it."""

from __future__ import annotations

import json
import subprocess

from integration.server_process import BINARY, Server

CLIENT = BINARY.with_name("longshort")


def test_output_that_cannot_be_written_is_an_error() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([CLIENT, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 5
    assert "standard output" in done.stderr


def test_lines_of_standard_input_are_answered_each_once(server: Server) -> None:
    """Reading and writing are two threads' work: neither may do the other's."""
    lines = "".join(f"document {number}\n" for number in range(1, 3001))
    command = [CLIENT, f"--server=127.0.0.1:{server.grpc_port}", "score", "--lines", "--json", "-"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    names = [json.loads(line)["name"] for line in done.stdout.splitlines()]
    assert names == [f"-:{number}" for number in range(1, 3001)]

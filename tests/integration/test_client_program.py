"""The client program around its commands: what scripts see of it."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

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


def test_a_run_whose_output_cannot_be_written_ends(server: Server) -> None:
    command = f"yes hello | {CLIENT} --server=127.0.0.1:{server.grpc_port} score --lines --json - >/dev/full"
    done = subprocess.run(
        ["bash", "-c", f"{command}; exit $?"], stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert done.returncode == 5
    assert done.stderr.endswith("standard output cannot be written: No space left on device\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_a_run_that_waits_for_its_input(server: Server, number: signal.Signals) -> None:
    command = [CLIENT, f"--server=127.0.0.1:{server.grpc_port}", "score", "--lines", "--json", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        client.stdin.write("hello\n")
        client.stdin.flush()
        assert json.loads(client.stdout.readline())["name"] == "-:1"
        client.send_signal(number)
        assert client.wait(60) == 4

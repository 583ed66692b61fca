"""The client program around its commands: what scripts see of it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.server_process import BINARY, ROOT, Server, wait_until

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


@pytest.mark.parametrize("form", ["", "--lines"])
def test_a_pipe_is_read_like_a_file(server: Server, form: str) -> None:
    command = f"{CLIENT} --server=127.0.0.1:{server.grpc_port} score {form} --json <(printf hello)"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["scores"][0]["token_count"] == "5"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_a_run_that_waits_for_its_input(server: Server, number: signal.Signals) -> None:
    command = [CLIENT, f"--server=127.0.0.1:{server.grpc_port}", "score", "--lines", "--json", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        client.stdin.write("hello\n")
        client.stdin.flush()
        assert json.loads(client.stdout.readline())["name"] == "-:1"
        client.send_signal(number)
        assert client.wait(60) == 4


def run(server: Server, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [CLIENT, f"--server=127.0.0.1:{server.grpc_port}", *arguments]
    return subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)


def test_the_table_of_models_says_that_memory_is_tokens(server: Server) -> None:
    """A bare 1024 reads like megabytes."""
    header, row = run(server, "models").stdout.decode().splitlines()
    assert header.split()[-1] == "MEMORY"
    assert re.fullmatch(r"\d+ tokens", row[header.index("MEMORY") :].strip())


def test_input_comes_from_standard_input(server: Server) -> None:
    ids = run(server, "tokenize", given=b"a cat").stdout
    assert run(server, "tokenize", "--ids", given=ids).stdout == ids
    (scored,) = run(server, "score", "--ids", "--json", given=ids).stdout.splitlines()
    assert json.loads(scored)["name"] == "-"
    assert json.loads(scored)["scores"][0]["token_count"] == "5"
    assert run(server, "generate", "--max-tokens=3", "--echo", given=b"The ").stdout.startswith(b"The ")
    wrong = run(server, "tokenize", "--ids", given=b"1 two 3")
    assert wrong.returncode == 1 and b'--ids: "two" is not a token id' in wrong.stderr


def test_a_document_too_large_for_a_message_leaves_the_others(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path / "server", "--max-message-bytes=4096") as server:
        lines = b"\n".join([b"x" * 50, b"x" * 5000, b"x" * 50])
        done = run(server, "score", "--json", "--lines", given=lines)
    assert done.returncode == 2
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [set(answer) for answer in answers[::2]] == [
        {"name", "fingerprint", "precision", "scores", "model", "usage"}
    ] * 2
    assert "the server accepts at most 4096 (--max-message-bytes)" in answers[1]["error"]["message"]
    assert b"of 3 documents, 1 invalid or not allowed" in done.stderr


def test_a_run_whose_server_is_killed_says_how_far_it_came(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path) as server:
        command = [CLIENT, f"--server=127.0.0.1:{server.grpc_port}", "score", "--lines", "--json", "-"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as client:
            client.stdin.write("hello\n")
            client.stdin.flush()
            assert json.loads(client.stdout.readline())["name"] == "-:1"
            server.process.kill()
            client.stdin.write("more\n")
            client.stdin.flush()  # and not closed: a program may write its next line after this one's answer
            assert client.wait(60) == 3
            assert (
                "longshort: 1 documents were answered before the run ended:\nlongshort: UNAVAILABLE"
                in client.stderr.read()
            )


def test_texts_and_images_are_classified_and_the_wrong_command_names_the_right_one(tmp_path: Path) -> None:
    with Server(ROOT / "models/zoo", tmp_path) as zoo:
        letter = run(zoo, "--model=languages", "classify", str(ROOT / "deploy/letter.txt"))
        assert letter.returncode == 0 and letter.stdout.splitlines()[1].split()[0] == b"German"
        photo = run(zoo, "--model=flowers", "classify", "-", given=(ROOT / "deploy/photo.jpg").read_bytes())
        assert photo.returncode == 0 and b"sunflower" in photo.stdout
        wrong = run(zoo, "--model=languages", "score", str(ROOT / "deploy/letter.txt"))
        assert wrong.returncode == 2 and b'languages is a classifier; use "longshort classify"' in wrong.stderr
        wrong = run(zoo, "--model=enwiki", "classify", str(ROOT / "deploy/paragraph.txt"))
        assert wrong.returncode == 2 and b'enwiki is a language model; use "longshort score"' in wrong.stderr


@pytest.fixture
def endless(server: Server) -> Iterator[subprocess.Popen[bytes]]:
    """A program that generates and does not end by itself."""
    # A program in the background of a shell ignores Ctrl-C.
    command = ["env", "--default-signal=INT", CLIENT, f"--server=127.0.0.1:{server.grpc_port}"]
    process = subprocess.Popen(
        [*command, "generate", "--prompt=x", "--max-tokens=60000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_work(endless: subprocess.Popen[bytes], server: Server, how: signal.Signals) -> None:
    assert endless.stdout.read(1), endless.stderr.read()
    endless.send_signal(how)
    _, errors = endless.communicate(timeout=60)
    assert endless.returncode == 4 and b"longshort: CANCELLED" in errors
    wait_until(lambda: server.metric("longshort_streams_active") == 0)


def test_a_reader_who_leaves_ends_the_work(endless: subprocess.Popen[bytes], server: Server) -> None:
    assert endless.stdout.read(1), endless.stderr.read()
    endless.stdout.close()
    assert endless.wait(60) == -signal.SIGPIPE
    wait_until(lambda: server.metric("longshort_streams_active") == 0)


def test_a_timeout_ends_the_work(server: Server) -> None:
    done = run(server, "--timeout=300ms", "generate", "--prompt=x", "--max-tokens=60000")
    assert done.returncode == 4 and b"DEADLINE_EXCEEDED" in done.stderr

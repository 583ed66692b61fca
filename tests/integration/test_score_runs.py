"""`longshort score` over many documents: whatever ends a run, the same command goes on, and each has one line."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration import model_directory
from integration.server_process import BINARY, Server, wait_until

CLIENT = BINARY.with_name("longshort")
ROWS = 1200


def document(row: int) -> str:
    """Many have equal names, some no text, and one is no JSON."""
    if row == 77:
        return "no JSON\n"
    text = {} if row % 100 == 50 else {"text": f"row {row} " + "x" * (row % 30)}
    return json.dumps({"name": f"name {row % 10}", **text}) + "\n"


DOCUMENTS = [document(row) for row in range(ROWS)]
REFUSED = f"longshort: of {ROWS} documents, {ROWS // 100 + 1} refused\n"


def command(out: Path | None, *options: str, servers: tuple[Server, ...]) -> list[str]:
    addresses = [f"--server=127.0.0.1:{server.grpc_port}" for server in servers]
    return [str(CLIENT), *addresses, "score", "--json-lines", "--json" if out is None else f"--resume={out}", *options]


def run(out: Path | None, server: Server) -> subprocess.CompletedProcess[str]:
    """To its end."""
    whole = "".join(DOCUMENTS)
    return subprocess.run(
        command(out, servers=(server,)), input=whole, capture_output=True, text=True, timeout=120, check=False
    )


class Run:
    """A run that gets as many documents as a test lets it have, and so is not at its end before the test is."""

    def __init__(self, out: Path, *options: str, servers: tuple[Server, ...]) -> None:
        self._out = out
        self._given = 0
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command(out, *options, servers=servers), stdin=pipe, stderr=pipe, text=True)

    def give(self, count: int) -> None:
        """Until the run has so many documents."""
        self.process.stdin.write("".join(DOCUMENTS[self._given : count]))
        self.process.stdin.flush()
        self._given = count

    def wait_for_lines(self, count: int) -> None:
        wait_until(lambda: line_count(self._out) >= count or self.process.poll() is not None)
        assert self.process.poll() is None

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """Exit code and standard error, once it has the signal."""
        self.process.send_signal(number)
        return self.process.wait(60), self.process.stderr.read()

    def finish(self) -> tuple[int, str]:
        """The same, once it has the rest of the documents."""
        self.give(ROWS)
        self.process.stdin.close()
        return self.process.wait(60), self.process.stderr.read()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()


def rows(text: str) -> list[Any]:
    """What the lines say; numbers as close as other company in a step leaves them."""
    assert text.endswith("\n") or not text

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rounded(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [rounded(inner) for inner in value]
        return round(value, 2) if isinstance(value, float) else value

    return [rounded(json.loads(line)) for line in text.splitlines()]


@pytest.fixture(scope="module")
def expected(server: Server) -> list[Any]:
    """The rows of a run that nothing ended."""
    done = run(None, server)
    assert done.returncode == 2 and done.stderr == REFUSED
    found = rows(done.stdout)
    assert len(found) == ROWS
    without_text = 'the line\'s object has no string "text"'
    assert found[50] == {"name": "name 0", "error": {"code": 3, "message": without_text}}
    assert set(found[51]) == {"name", "fingerprint", "precision", "scores", "model", "usage"}
    assert set(found[51]["scores"][0]) == {"log_likelihood", "token_count", "scored_token_count", "bits_per_byte"}
    return found


def line_count(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_run_that_is_killed_again_and_again_goes_on(server: Server, expected: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    draw = random.Random(27)
    for at in sorted(draw.sample(range(1, ROWS - 200), 8)):
        with Run(out, servers=(server,)) as client:
            client.give(at + 150)
            client.wait_for_lines(at)
            client.end(signal.SIGKILL)
        # The kernel writes a short line as a whole; a machine that loses its power may not.
        whole = out.read_bytes()
        out.write_bytes(whole[: len(whole) - draw.randrange(1, 200)])
    done = run(out, server)
    assert done.returncode == 2 and "was not whole: its" in done.stderr
    assert done.stderr.endswith(REFUSED)
    assert rows(out.read_text()) == expected


def test_ctrl_c_tells_how_to_go_on(server: Server, expected: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with Run(out, servers=(server,)) as client:
        client.give(500)
        client.wait_for_lines(100)
        # Its input has an end once it is interrupted: it would wait for more, and then end without a word.
        client.process.send_signal(signal.SIGINT)
        client.process.stdin.close()
        assert client.process.wait(60) == 4
        told = client.process.stderr.read()
    assert told.endswith(f"longshort: {out} has {line_count(out)} whole lines; the same command goes on behind them\n")
    assert run(out, server).returncode == 2
    assert rows(out.read_text()) == expected


def on_a_small_disk(folder: Path, script: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs the command, in a shell, where `disk` is a folder that takes 64 KiB; what is there is copied to `kept`."""
    (folder / "disk").mkdir()
    (folder / "documents").write_text("".join(DOCUMENTS))
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    whole = f"mount -t tmpfs -o size=64k none disk; {' '.join(script)}; code=$?; cp disk/out kept; exit $code"
    return subprocess.run(
        [*unshare, "bash", "-c", whole], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_full_disk_leaves_whole_lines(server: Server, expected: list[Any], tmp_path: Path) -> None:
    done = on_a_small_disk(tmp_path, [*command(Path("disk/out"), servers=(server,)), "< documents"])
    kept = tmp_path / "kept"
    assert done.returncode == 5
    assert "longshort: disk/out: No space left on device\n" in done.stderr
    count = line_count(kept)
    assert f"longshort: disk/out has {count} whole lines; the same command goes on behind them\n" in done.stderr
    assert 0 < count < ROWS and rows(kept.read_text()) == expected[:count]
    assert run(kept, server).returncode == 2
    assert rows(kept.read_text()) == expected


def test_a_full_disk_behind_standard_output_is_gone_on_from(
    server: Server, expected: list[Any], tmp_path: Path
) -> None:
    """Its last line is cut short, which the message does not count."""
    done = on_a_small_disk(tmp_path, [*command(None, servers=(server,)), "< documents > disk/out"])
    kept = tmp_path / "kept"
    assert done.returncode == 5 and not kept.read_bytes().endswith(b"\n")
    assert f"longshort: {line_count(kept)} whole lines were written; the same command with --resume=FILE" in done.stderr
    assert "standard output cannot be written: No space left on device\n" in done.stderr
    done = run(kept, server)
    assert done.returncode == 2 and "was not whole: its" in done.stderr
    assert rows(kept.read_text()) == expected


@pytest.fixture
def pair(repository: Path, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    with Server(repository, tmp_path / "a") as first, Server(repository, tmp_path / "b") as second:
        yield first, second


def test_a_server_that_is_killed_is_left_to_the_others(
    pair: tuple[Server, Server], expected: list[Any], tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    with Run(out, servers=pair) as client:
        client.give(500)
        client.wait_for_lines(300)
        assert all(server.metric("longshort_prompt_tokens_total") > 0 for server in pair)
        pair[0].process.kill()
        code, told = client.finish()
    assert code == 2
    assert f"longshort: 127.0.0.1:{pair[0].grpc_port} is left: UNAVAILABLE" in told
    assert rows(out.read_text()) == expected


def test_with_retry_a_run_outlives_its_server(repository: Path, expected: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with Server(repository, tmp_path / "0") as first, Run(out, "--retry", servers=(first,)) as client:
        client.give(500)
        client.wait_for_lines(300)
        first.process.kill()
        first.wait()
        with Server(repository, tmp_path / "1", grpc_port=first.grpc_port):
            code, told = client.finish()
    assert code == 2
    assert told.count("is waited for: UNAVAILABLE") == told.count("is back") == 1
    assert rows(out.read_text()) == expected


def test_a_server_that_comes_back_with_another_model_is_refused(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    model_directory.write(tmp_path / "other", seed=2)
    with Server(repository, tmp_path / "0") as first, Run(out, "--retry", servers=(first,)) as client:
        client.give(500)
        client.wait_for_lines(300)
        first.process.kill()
        first.wait()
        with Server(tmp_path / "other", tmp_path / "1", grpc_port=first.grpc_port):
            client.process.stdin.close()
            code, told = client.process.wait(60), client.process.stderr.read()
    assert code == 2
    assert "FAILED_PRECONDITION: its model tiny has the fingerprint" in told
    assert 300 <= line_count(out) <= 500


def test_a_file_of_other_weights_of_the_same_name_and_version_is_not_gone_on_with(
    server: Server, expected: list[Any], tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("".join(json.dumps(row) + "\n" for row in expected[:60]))
    before = out.read_bytes()
    model_directory.write(tmp_path / "other", seed=2)
    with Server(tmp_path / "other", tmp_path / "server") as other:
        done = run(out, other)
    assert done.returncode == 1
    assert f"--resume: {out}:1: it is of a model with the fingerprint {expected[0]['fingerprint']}" in done.stderr
    assert out.read_bytes() == before
    assert run(out, server).returncode == 2

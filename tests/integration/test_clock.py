"""The machine's clock jumps while the real server works."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from integration.running_stream import RunningStream
from integration.server_process import BINARY, Server, wait_until

DAY = 24 * 60 * 60
LONG = 10 * 60  # longer than a test takes, and far shorter than a day


class WallClock:
    """What the server believes to be the machine's clock."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.write_bytes(bytes(8))

    def show(self, more: int) -> None:
        """From now on it shows so many seconds more than the true time."""
        with self.file.open("r+b") as file:
            file.write(struct.pack("=q", more))


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    return WallClock(tmp_path / "clock")


@pytest.fixture
def server(repository: Path, tmp_path: Path, clock: WallClock) -> Iterator[Server]:
    with Server(
        repository,
        tmp_path / "server",
        "--log-format=json",
        f"--session-time-to-live={LONG}s",
        "--keepalive-interval=200ms",
        program=BINARY.parent / "longshort-server-with-faults",
        environment={"LONGSHORT_WALL_CLOCK": str(clock.file)},
    ) as running:
        yield running


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_jump_of_the_clock_ends_nothing(api: SimpleNamespace, server: Server, clock: WallClock, jump: int) -> None:
    inference = api.inference_grpc.InferenceStub(server.channel)

    def ask(text: str, must_exist: bool) -> None:
        session = {"id": "kept", "must_exist": must_exist}
        request = api.inference.GenerateRequest(prompt={"text": text}, max_tokens=4, session=session)
        inference.Generate(request, timeout=LONG)

    ask("it begins", must_exist=False)
    running = RunningStream(api, server, "listener", timeout=LONG)
    clock.show(jump)
    ask(" and goes on: its time to live is not over", must_exist=True)
    seen = running.messages
    wait_until(lambda: running.messages > seen + 20)
    running.cancel()

    def calls() -> list[dict]:
        lines = [json.loads(line) for line in server.log().splitlines()]
        return [line for line in lines if line["message"] == "request"]

    wait_until(lambda: len(calls()) == 3)
    assert [line["code"] for line in calls()] == ["OK", "OK", "CANCELLED"]
    assert all(0 <= line["seconds"] < LONG for line in calls())
    # The log has the clock's time.
    before, *_, after = [line["time"] for line in calls()]
    assert (after > before) == (jump > 0)

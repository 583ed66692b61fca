"""A real longshort-server, started on loopback with ports of the system's choice."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import grpc

ROOT = Path(__file__).parents[2]
BINARY = Path(os.environ.get("LONGSHORT_SERVER", ROOT / "build/release/bin/longshort-server"))
EMULATED = BINARY.with_name("longshort-server-with-emulated-gpus")
# LONGSHORT_DEVICE=emulated: all models run on emulated GPUs, except in tests that ask for other devices (docs/gpu.md).
ON_GPUS = {"cpu": False, "emulated": True}[os.environ.get("LONGSHORT_DEVICE", "cpu")]
SERVER = EMULATED if ON_GPUS else BINARY
# Its models fail as LONGSHORT_FAULTS says.
FAULTY = EMULATED if ON_GPUS else BINARY.with_name("longshort-server-with-faults")
START_SECONDS = 60.0
# The environment of servers whose memory is measured: of what they free the address sanitizer keeps little then.
MEASURED = {"ASAN_OPTIONS": "quarantine_size_mb=8"}


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Returns as soon as the condition holds; fails if it does not within the time, by default far more than a busy
    machine takes."""
    end = time.monotonic() + seconds * (4 if ON_GPUS else 1)  # the emulator is slow
    while not condition():
        if time.monotonic() >= end:
            raise AssertionError(f"did not come true within {seconds:g} s: {inspect.getsource(condition).strip()}")
        time.sleep(0.02)


def lines_and_left_out(log: str, of: str) -> int:
    """How many lines with this text the log has, and how many it says were left out."""
    lines = [line for line in log.splitlines() if of in line]
    return len(lines) + sum(int(count) for line in lines for count in re.findall(r"left_out=(\d+)$", line))


def account_for_lines(log: Callable[[], str], of: str, count: int, cause: Callable[[], object]) -> None:
    """Returns once the log accounts for all of `count` lines, and for those that `cause` causes. Of such lines one is
    written in a second, with the number of those left out before it."""

    def is_complete() -> bool:
        nonlocal count
        cause()
        count += 1
        latest = time.monotonic() + 1
        while lines_and_left_out(log(), of) != count:
            if time.monotonic() > latest:
                return False
            time.sleep(0.02)
        return True

    wait_until(is_complete)


def workers(count: int) -> str:
    """The option that gives each model so many workers."""
    return "--devices=" + (",".join(f"emulated:{gpu}" for gpu in range(count)) if ON_GPUS else f"cpu:{count}")


def less(count: int) -> int:
    """Of what is much work: an eighth for emulated GPUs, whose steps take longer."""
    return count // 8 if ON_GPUS else count


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the program to its end, for what ends by itself."""
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=START_SECONDS, check=False)


class Server:
    """A server process, on a port of the system's choice or `grpc_port`. Use as a context manager; leaving it stops the
    process if it still runs."""

    def __init__(
        self,
        repository: Path,
        folder: Path,
        *arguments: str,
        program: Path = SERVER,
        grpc_port: int = 0,
        environment: dict[str, str] | None = None,
        standard_error: int | None = None,
        trusted: bytes | None = None,
        socket: Path | None = None,
    ) -> None:
        """`trusted`: the PEM of the authorities by which clients know a server that speaks TLS. `socket`: a Unix socket
        in place of a port."""
        self.trusted = trusted
        folder.mkdir(parents=True, exist_ok=True)
        self.port_file = folder / "ports.json"
        self.log_path = folder / "server.log"
        self._log = self.log_path.open("wb")
        environment = environment or {}
        if program == EMULATED:
            # The emulator is slow. Prompts are read in pieces as large as on the CPU, and nothing is refused because it
            # will take minutes. What a test says comes last, and counts.
            arguments = (workers(1), "--step-time=1s", "--max-queue-time=1h", *arguments)
            # Threads that wait for each other's part of a tensor this small take the processor from the emulator.
            environment = {"OMP_NUM_THREADS": "1", **environment}
        self.process = subprocess.Popen(
            [
                program,
                f"--model-repository={repository}",
                f"--listen=127.0.0.1:{grpc_port}" if socket is None else f"--listen=unix:{socket}",
                "--http-listen=127.0.0.1:0",
                f"--port-file={self.port_file}",
                *arguments,
            ],
            stderr=self._log if standard_error is None else standard_error,
            env={**os.environ, **environment},
        )
        self._wait_for_ports()
        ports = json.loads(self.port_file.read_text())
        self.grpc_port: int = ports["grpc"]
        self.http_port: int = ports["http"]
        self.address = f"127.0.0.1:{self.grpc_port}" if socket is None else f"unix:{socket}"
        self.channel = self.new_channel()

    def _wait_for_ports(self) -> None:
        def started() -> bool:
            assert self.process.poll() is None, f"the server ended at its start:\n{self.log()}"
            return self.port_file.exists()

        wait_until(started, START_SECONDS)

    def new_channel(self, *more: tuple[str, int]) -> grpc.Channel:
        """A connection of its own, with these channel arguments more."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0), *more]
        if self.trusted is None:
            return grpc.insecure_channel(self.address, options)
        return grpc.secure_channel(self.address, grpc.ssl_channel_credentials(self.trusted), options)

    def slow_channel(self) -> grpc.Channel:
        """A connection that takes 16 KiB of a stream beyond what its client has read: gRPC's own window grows to
        megabytes, and so may take all that a test has to say."""
        return self.new_channel(("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 16 << 10))

    def log(self) -> str:
        """What the server has written to standard error."""
        return self.log_path.read_text()

    def http(self, path: str) -> tuple[int, str]:
        """Status and body of a GET."""
        scheme, handlers = "http", [urllib.request.ProxyHandler({})]
        if self.trusted is not None:
            context = ssl.create_default_context(cadata=self.trusted.decode())
            scheme, handlers = "https", [*handlers, urllib.request.HTTPSHandler(context=context)]
        opener = urllib.request.build_opener(*handlers)
        try:
            with opener.open(f"{scheme}://127.0.0.1:{self.http_port}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the samples of this name that have at least these labels; 0 if there is none."""
        total = 0.0
        for line in self.http("/metrics")[1].splitlines():
            found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if found is None or found[1] != name:
                continue
            have = dict(re.findall(r'(\w+)="([^"]*)"', found[2] or ""))
            if labels.items() <= have.items():
                total += float(found[3])
        return total

    def peak_memory(self) -> int:
        """The most bytes that the process has had at once."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10

    def forget_peak_memory(self) -> None:
        """Resets the peak to what the process has now."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float = 60.0) -> int:
        """The exit code, once the process has ended."""
        return self.process.wait(seconds)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._log.close()

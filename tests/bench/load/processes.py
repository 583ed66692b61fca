"""The programs of a measurement: servers on ports that the system chooses, and the load client."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

START_SECONDS = 120.0
STOP_SECONDS = 60.0
MEMORY_SAMPLE_SECONDS = 0.25
PAGE_BYTES = 4096


class ServerProcess:
    """A server. Use as a context manager: leaving it stops the process. Its log is `log_path`."""

    def __init__(self, command: Sequence[str | Path], port_file: Path, log_path: Path) -> None:
        port_file.unlink(missing_ok=True)
        self.log_path = log_path
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while not port_file.exists() or not port_file.read_text().endswith("}\n"):
            if self._process.poll() is not None or time.monotonic() > end:
                self._process.kill()
                raise SystemExit(f"{command[0]} did not start:\n{log_path.read_text()[-2000:]}")
            time.sleep(0.02)
        self._ports = json.loads(port_file.read_text())

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._ports['grpc']}"

    @property
    def http_port(self) -> int:
        return self._ports["http"]

    def metrics(self) -> str:
        """What Prometheus would read."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self._ports['http']}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the samples of this name with at least these labels; 0 if there is none."""
        total = 0.0
        for line in self.metrics().splitlines():
            found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if found is None or found[1] != name:
                continue
            if labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', found[2] or "")).items():
                total += float(found[3])
        return total

    def resident_bytes(self) -> int:
        """The memory that the process holds."""
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * PAGE_BYTES

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class MemorySamples:
    """The memory of a server while a block runs: [seconds since its begin, bytes]."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self.samples: list[tuple[float, int]] = []

    def _sample(self) -> None:
        begin = time.monotonic()
        while not self._over.wait(MEMORY_SAMPLE_SECONDS):
            self.samples.append((round(time.monotonic() - begin, 2), self._server.resident_bytes()))

    def peak(self, since: float, until: float) -> int:
        """The most bytes between these times, in seconds since the block's begin; 0 if there is no sample."""
        return max((size for seconds, size in self.samples if since <= seconds <= until), default=0)

    def __enter__(self) -> MemorySamples:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


class LoadProcess:
    """A running longshort-load."""

    def __init__(self, program: Path, arguments: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="longshort-load-")
        self._report = Path(self._folder.name) / "report.json"
        command = [program, *arguments, f"--json={self._report}"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def finish(self) -> tuple[str, dict]:
        """Waits for the end. Returns the table and the report."""
        table, _ = self._process.communicate()
        if self._process.returncode != 0:
            raise SystemExit(f"longshort-load failed with exit code {self._process.returncode}")
        report = json.loads(self._report.read_text())
        self._folder.cleanup()
        return table, report

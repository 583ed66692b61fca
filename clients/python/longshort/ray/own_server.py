"""A longshort-server that belongs to this process: each of the two ends with the other."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.05
# Length of the log's end in error messages.
_LOG_BYTES = 2000


@dataclass(frozen=True, slots=True)
class StartServer:
    """How each actor starts its own server."""

    # Path of the model repository on the nodes.
    repository: str
    # More options of longshort-server. By default, --threads is the number of processors that Ray has reserved.
    options: Sequence[str] = ()
    # The program: its path on the nodes, or its name in their PATH.
    program: str = "longshort-server"
    # Maximum seconds for loading the models.
    patience: float = 600.0


class OwnServer:
    """A running server on a free port of the loopback interface.

    The server gets SIGTERM when this process ends for any reason. If the server ends first, this process exits: Ray
    restarts both and repeats the batches in flight.
    """

    def __init__(self, start: StartServer, num_cpus: float) -> None:
        """Raises RuntimeError if it does not start."""
        self._folder = tempfile.TemporaryDirectory(prefix="longshort-")
        self._ports = Path(self._folder.name) / "ports"
        self._said = Path(self._folder.name) / "log"
        self._started = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: OSError | None = None
        # Whether this process exits when the server ends.
        self._serving = False
        # The kernel sends SIGTERM when the thread that started the server ends, so this thread waits for the server.
        threading.Thread(target=self._run, args=(self._command(start, num_cpus),), daemon=True).start()
        self._started.wait()
        if self._failure is not None:
            raise RuntimeError(f"{start.program} cannot be started: {self._failure}")
        self.address = f"127.0.0.1:{self._wait_for_port(start)}"
        self._serving = True
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"{start.program} exited with {self._process.returncode}: {self._last_words()}")

    def _command(self, start: StartServer, num_cpus: float) -> list[str]:
        options = list(start.options)
        if not any(option.startswith("--threads") for option in options):
            options.append(f"--threads={max(1, math.ceil(num_cpus))}")
        listen = ["--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", f"--port-file={self._ports}"]
        model = [f"--model-repository={start.repository}", "--log-level=warning"]
        return ["setpriv", "--pdeathsig=TERM", start.program, *model, *listen, *options]

    def _run(self, command: Sequence[str]) -> None:
        try:
            with self._said.open("wb") as said:
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=said)
        except OSError as error:
            self._failure = error
        self._started.set()
        if self._process is not None:
            code = self._process.wait()
            if self._serving:
                print(f"longshort-server exited with {code}: {self._last_words()}", file=sys.stderr, flush=True)
                os._exit(1)

    def _wait_for_port(self, start: StartServer) -> int:
        assert self._process is not None
        end = time.monotonic() + start.patience
        while not self._ports.exists():
            if self._process.poll() is not None:
                raise RuntimeError(f"{start.program} exited with {self._process.returncode}: {self._last_words()}")
            if time.monotonic() > end:
                self._process.kill()
                raise RuntimeError(f"{start.program} did not load its models within {start.patience:g} s")
            time.sleep(_POLL_SECONDS)
        return int(json.loads(self._ports.read_text())["grpc"])

    def _last_words(self) -> str:
        with self._said.open("rb") as said:
            said.seek(max(0, self._said.stat().st_size - _LOG_BYTES))
            return said.read().decode(errors="replace").strip()

"""A longshort-server beside the process that uses it: it ends with that process, and that process with it."""

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

_LOOK_SECONDS = 0.05
# Of what a server has said before it ended.
_TOLD_BYTES = 2000


@dataclass(frozen=True, slots=True)
class StartServer:
    """How each actor starts a server of its own."""

    # The model repository, by its path on the nodes.
    repository: str
    # More options of longshort-server. By default --threads is what Ray has reserved of processors.
    options: Sequence[str] = ()
    # The program, by its path on the nodes or its name on their PATH.
    program: str = "longshort-server"
    # Seconds that loading the models may take.
    patience: float = 600.0


class OwnServer:
    """A running server that listens on the loopback, on a port of the system's choice.

    It gets SIGTERM when this process ends, however it does. When the server ends first, so does this process: Ray
    starts both again, and has what was on its way done again.
    """

    def __init__(self, start: StartServer, num_cpus: float) -> None:
        """Raises RuntimeError if it does not start."""
        self._folder = tempfile.TemporaryDirectory(prefix="longshort-")
        self._ports = Path(self._folder.name) / "ports"
        self._said = Path(self._folder.name) / "log"
        self._started = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: OSError | None = None
        # Whether a server that ends takes this process along.
        self._serving = False
        # SIGTERM comes when the thread ends that has started it; this one lives as long as the server or the process.
        threading.Thread(target=self._run, args=(self._command(start, num_cpus),), daemon=True).start()
        self._started.wait()
        if self._failure is not None:
            raise RuntimeError(f"{start.program} cannot be started: {self._failure}")
        self.address = f"127.0.0.1:{self._wait_for_port(start)}"
        self._serving = True
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"{start.program} ended with {self._process.returncode}: {self._last_words()}")

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
                print(f"longshort-server ended with {code}: {self._last_words()}", file=sys.stderr, flush=True)
                os._exit(1)

    def _wait_for_port(self, start: StartServer) -> int:
        assert self._process is not None
        end = time.monotonic() + start.patience
        while not self._ports.exists():
            if self._process.poll() is not None:
                raise RuntimeError(f"{start.program} ended with {self._process.returncode}: {self._last_words()}")
            if time.monotonic() > end:
                self._process.kill()
                raise RuntimeError(f"{start.program} has not loaded its models in {start.patience:g} s")
            time.sleep(_LOOK_SECONDS)
        return int(json.loads(self._ports.read_text())["grpc"])

    def _last_words(self) -> str:
        with self._said.open("rb") as said:
            said.seek(max(0, self._said.stat().st_size - _TOLD_BYTES))
            return said.read().decode(errors="replace").strip()

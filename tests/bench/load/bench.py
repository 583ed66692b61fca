"""The common parts of the scenarios: options, servers and load runs, and the figures with their targets."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.load import models
from bench.load.processes import LoadProcess, ServerProcess

# Token ids that every language model here can read; ids below are made up.
IDS = "ids=4:200"
ELEMENT_BYTES = {"fp32": 4, "bf16": 2, "int8": 2}


@dataclass
class Figure:
    """One measured number, None if there was nothing to measure; `target` is None if it is only reported."""

    name: str
    value: float | None
    unit: str = ""
    target: str | None = None
    met: bool | None = None


class Bench:
    """One scenario's run."""

    def __init__(self, options: argparse.Namespace, command: list[str]) -> None:
        self.options = options
        self.command = shlex.join(["tests/bench/load/run", *command])
        self.figures: list[Figure] = []
        self.runs: list[dict] = []
        self._programs = options.build / "bin"
        self._folder = tempfile.TemporaryDirectory(prefix="longshort-load-")
        self.scratch = Path(self._folder.name)
        self._servers = 0

    def language_model(self, memory: int | None = None) -> models.LanguageModel:
        """The model that --model names; the formula model with this memory, or with --memory."""
        folder = self.options.build.resolve().parent / "bench-models"
        if self.options.model == "enwiki":
            return models.enwiki(folder)
        return models.formula(memory or self.options.memory, folder)

    @contextmanager
    def server(self, repository: Path, *arguments: str, program: str = "longshort-server") -> Iterator[ServerProcess]:
        self._servers += 1
        port_file = self.scratch / f"ports-{self._servers}.json"
        command = [
            self._programs / program,
            f"--model-repository={repository}",
            "--listen=127.0.0.1:0",
            "--http-listen=127.0.0.1:0",
            "--drain-timeout=1s",
            f"--port-file={port_file}",
            *arguments,
            *self.options.server_option,
        ]
        with ServerProcess(command, port_file, self.scratch / f"server-{self._servers}.log") as running:
            yield running

    def serve(self, model: models.LanguageModel, *arguments: str) -> AbstractContextManager[ServerProcess]:
        """A server of this language model, with --precision and --cache-bytes."""
        asked = [f"--precision={self.options.precision}"]
        if self.options.cache_bytes is not None:
            asked.append(f"--cache-bytes={self.options.cache_bytes}")
        return self.server(model.repository, *asked, *arguments)

    @contextmanager
    def echo_server(self, *arguments: str) -> Iterator[ServerProcess]:
        self._servers += 1
        port_file = self.scratch / f"ports-{self._servers}.json"
        command = [self._programs / "longshort-echo-server", *arguments, str(port_file)]
        with ServerProcess(command, port_file, self.scratch / f"server-{self._servers}.log") as running:
            yield running

    def new_token(self) -> tuple[Path, Path]:
        """The files of a token, for clients, and of its line, for servers."""
        command = [self._programs / "longshort", "token", "new", "bench"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        files = self.scratch / "token", self.scratch / "server.tokens"
        for file, line in zip(files, lines, strict=True):
            file.touch(mode=0o600)
            file.write_text(f"{line}\n")
        return files

    def start_load(self, server: ServerProcess, title: str, *arguments: str) -> LoadProcess:
        program = self._programs / "longshort-load"
        return LoadProcess(program, [f"--server={server.address}", f"--title={title}", *arguments])

    def finish_load(self, load: LoadProcess, quiet: bool = False) -> list[dict]:
        """Prints the table, keeps the report; returns the figures of each workload."""
        table, report = load.finish()
        if not quiet:
            print(table, flush=True)
            self.runs.append(report)
        for workload in report["workloads"]:
            if workload["failed"] > 0:
                print(f"  {workload['failed']} calls failed: {sorted(workload['total_seconds'])}")
        return report["workloads"]

    def load(self, server: ServerProcess, title: str, *arguments: str, quiet: bool = False) -> list[dict]:
        return self.finish_load(self.start_load(server, title, *arguments), quiet)

    def http_load(
        self, server: ServerProcess, path: str, body: bytes, kind: str, callers: int, until: str = ""
    ) -> dict:
        """Callers that post `body`, a connection each; seconds until the answer, or until `until` in it."""
        file = self.scratch / "body"
        file.write_bytes(body)
        program = self._programs / "longshort-http-load"
        arguments = [server.http_port, path, kind, file, callers, self.options.seconds, until]
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"longshort-http-load failed: {done.stderr}")
        return json.loads(done.stdout)

    def first_token(self, server: ServerProcess, workload: str, seed: int) -> float:
        """Seconds to the first token of one request, alone."""
        arguments = ["--warm-up=0s", "--seconds=1h", f"--seed={seed}"]
        (done,) = self.load(server, "", f"--workload={workload},requests=1", *arguments, quiet=True)
        if done["answered"] != 1:
            raise SystemExit(f"the request failed: {list(done['total_seconds'])}")
        return done["first_token_seconds"]["max"]

    def at_least(self, name: str, value: float | None, target: float) -> None:
        """A ratio; what was not measured misses its target."""
        self.figures.append(Figure(name, value, "x", f"at least {target:g}x", value is not None and value >= target))

    def at_most(self, name: str, value: float | None, target: float) -> None:
        """The same for ratios that should be small."""
        self.figures.append(Figure(name, value, "x", f"at most {target:g}x", value is not None and value <= target))

    def report(self, name: str, value: float | None, unit: str = "") -> None:
        """A figure without target."""
        self.figures.append(Figure(name, value, unit))

    def finish(self, scenario: str) -> None:
        """Prints the figures beside their targets; writes JSON if --json-dir says where."""
        print(f"{scenario}, on {machine()}:")
        for figure in self.figures:
            line = f"  {figure.name:<66} {number(figure.value):>10} {figure.unit:<6}"
            if figure.target is not None:
                line += f" target: {figure.target}: {'met' if figure.met else 'MISSED'}"
            print(line.rstrip())
        print(f"  again: {self.command}")
        if self.options.json_dir is not None:
            self.options.json_dir.mkdir(parents=True, exist_ok=True)
            result = {
                "scenario": scenario,
                "command": self.command,
                "machine": machine(),
                "figures": [asdict(figure) for figure in self.figures],
                "runs": self.runs,
            }
            path = self.options.json_dir / f"{scenario}.json"
            path.write_text(json.dumps(result) + "\n")
            print(f"  written: {path}")
        self._folder.cleanup()


def number(value: float | None) -> str:
    """Three digits, or whole where there are more."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def processor() -> str:
    """Cores that may be used, and their name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{len(os.sched_getaffinity(0))} cores of {name}"


def machine() -> str:
    """The processor, and how busy it is besides."""
    return f"{processor()}, load average {os.getloadavg()[0]:.1f}"


def percentile(workload: dict, kind: str, which: str) -> float | None:
    """Seconds; None without samples. `kind` is first_token, inter_token, or a code: OK for answers, end to end."""
    if kind in ("first_token", "inter_token"):
        distribution = workload[f"{kind}_seconds"]
    else:
        distribution = workload["total_seconds"].get(kind, {"count": 0})
    return distribution[which] if distribution["count"] > 0 else None


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """None where nothing was measured."""
    return numerator / denominator if numerator is not None and denominator else None


def median(values: list[float]) -> float:
    return statistics.median(values)

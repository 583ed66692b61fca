"""One run of the benchmarks on a device: its programs, its peaks, the rows of its table."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.load.processes import ServerProcess

PRESETS = Path(__file__).resolve().parents[3] / "models/convert/src/longshort_convert/presets"
# What PyTorch may take for one measurement: compiling takes minutes.
PLAIN_SECONDS = 120
# Logits of the same weights and items, by other orders of sums.
SAME_LOGITS = {"fp32": 2e-3, "bf16": 5e-2}


@dataclass
class Row:
    """A case's line."""

    case: str
    figure: str
    target: str = ""
    met: bool | None = None
    share: str = ""
    eager: str = ""
    compiled: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)

    def cells(self) -> list[str]:
        met = {None: "", True: "met", False: "missed"}[self.met]
        return [self.case, self.figure, self.target, met, self.share, self.eager, self.compiled]


class MeasurementError(Exception):
    """A program of the bench failed."""


class Bench:
    """`tiny`: what shows that programs work, in seconds, on an emulated GPU. `compiles`: whether torch.compile, which
    takes minutes, is measured, too. `plain_seconds`: what one measurement of other programs than Longshort may take."""

    def __init__(
        self, programs: Path, device: str, scratch: Path, *, compiles: bool, plain_seconds: float = PLAIN_SECONDS
    ) -> None:
        self.device, self.tiny = device, device.startswith("emulated:")
        self.compiles = compiles and not self.tiny
        self._programs, self._scratch, self._plain_seconds = programs, scratch, plain_seconds

    @functools.cached_property
    def peaks(self) -> dict[str, Any]:
        """Errors: MeasurementError."""
        sizes = {"side": 128, "copied-bytes": 1 << 20, "seconds": 0.01} if self.tiny else {}
        return self.measure("peaks", **sizes)

    def command(self, name: str, **options: object) -> list[str]:
        """The command that measures with Longshort. An option that is True is a switch."""
        return [str(self._programs / "longshort-gpu-bench"), name, *self._words(options)]

    def plain_command(self, kind: str, *, module: str = "bench.gpu.plain_times", **options: object) -> list[str]:
        """The command that measures with another program. An option that is True is a switch."""
        return [sys.executable, "-m", module, kind, *self._words(options)]

    def _words(self, options: Mapping[str, object]) -> list[str]:
        words = [f"--{name.replace('_', '-')}={value}" for name, value in {"device": self.device, **options}.items()]
        return [word.removesuffix("=True") for word in words if not word.endswith("=False")]

    def measure(self, command: str, **options: object) -> dict[str, Any]:
        """Errors: MeasurementError."""
        done = subprocess.run(self.command(command, **options), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr.strip() or "nothing").splitlines()[-1]
            raise MeasurementError(f"{command} ended with {done.returncode}: {said}")
        return json.loads(done.stdout) if done.stdout else {}

    def plain(self, kind: str, *, module: str = "bench.gpu.plain_times", **options: object) -> dict[str, Any]:
        """Other programs' times, from a module in a process of its own; {"error": ...} if there are none."""
        command = self.plain_command(kind, module=module, **options)
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=self._plain_seconds)
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {self._plain_seconds:g} s"}
        if done.returncode != 0:
            return {"error": f"ended with {done.returncode}: {(done.stderr.strip() or 'nothing').splitlines()[-1]}"}
        return json.loads(done.stdout.splitlines()[-1])

    def model(self, name: str, config: Mapping[str, Any]) -> Path:
        """A model directory with random weights, made once."""
        directory = self._scratch / name
        if not directory.exists():
            file = self._scratch / f"{name}.json"
            file.write_text(json.dumps(config))
            self.measure("write", config=file, model=directory)
        return directory

    def served(self, model: Path, server_options: list[str], load_options: list[str]) -> dict[str, Any]:
        """longshort-load's report on a server on the device with only this model. Errors: MeasurementError."""
        repository = self._scratch / f"{model.name}-served"
        (repository / "model").mkdir(parents=True, exist_ok=True)
        version = repository / "model/1"
        if not version.exists():
            version.symlink_to(model)
        ports, report = self._scratch / "ports.json", self._scratch / "load.json"
        program = "longshort-server-with-emulated-gpus" if self.tiny else "longshort-server"
        command = [self._programs / program, f"--model-repository={repository}", f"--devices={self.device}",
                   "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", f"--port-file={ports}", "--drain-timeout=1s",
                   *server_options]  # fmt: skip
        try:
            with ServerProcess(command, ports, self._scratch / "server.log") as server:
                load = [self._programs / "longshort-load", f"--server={server.address}", f"--json={report}"]
                done = subprocess.run([*load, *load_options], capture_output=True, text=True, check=False)
        except SystemExit as error:
            raise MeasurementError(str(error)) from error
        if done.returncode != 0:
            raise MeasurementError(f"longshort-load: {(done.stderr.strip() or 'nothing').splitlines()[-1]}")
        return json.loads(report.read_text())["workloads"][0]


def preset(name: str) -> dict[str, Any]:
    return json.loads((PRESETS / f"{name}.json").read_text())


def median(values: list[float]) -> float:
    return statistics.median(values)


def percentile(values: list[float], percent: float) -> float:
    """The least value that so many percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def shown(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def beside(found: Mapping[str, Any], ours: float) -> str:
    """PyTorch's time, and how many times ours it is."""
    if "error" in found:
        return str(found["error"])[:60]
    theirs = statistics.fmean(found["seconds"])
    return f"{shown(theirs)} ({theirs / ours:.1f}x)"


def logits_differ(found: Mapping[str, Any], ours: list[float], precision: str) -> bool:
    """Whether PyTorch's model is not the same."""
    if "logits" not in found:
        return False
    largest = max(abs(a - b) for a, b in zip(found["logits"], ours, strict=True))
    return not largest <= SAME_LOGITS[precision] * max(1.0, max(abs(value) for value in ours))


def as_json(rows: list[Row]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]

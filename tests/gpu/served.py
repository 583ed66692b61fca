"""Compares a server with workers on a device with one on the CPU, for every kind of call with the project's client."""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models/zoo"
START_SECONDS = 300.0
# Beginnings that an emulated GPU reads in seconds.
EMULATED_BYTES, GPU_BYTES = 24, 640
EMULATED_TOKENS, GPU_TOKENS = 2, 64
# Of a sum of log-likelihoods: a token's part of 1e-5. Of probabilities: rounding of sums in another order.
PER_TOKEN, PROBABILITY = 1e-5, 1e-4


@dataclass(frozen=True)
class Call:
    name: str
    rpc: str
    arguments: list[str]


def calls(folder: Path, device: str) -> list[Call]:
    few = device.startswith("emulated:")
    text = folder / "text"
    text.write_bytes((ROOT / "deploy/paragraph.txt").read_bytes()[: EMULATED_BYTES if few else GPU_BYTES])
    tokens = EMULATED_TOKENS if few else GPU_TOKENS
    go_on = [f"--max-tokens={tokens}", "--temperature=0", "--no-stream", "--prompt=The lighthouse "]
    return [
        Call("continue a text", "Generate", ["--model=enwiki", "generate", *go_on]),
        Call("score a text", "ScoreTexts", ["--model=enwiki", "score", str(text)]),
        Call("classify a letter", "ScoreTexts", ["--model=languages", "classify", str(ROOT / "deploy/letter.txt")]),
        Call("classify a photo", "ClassifyImage", ["--model=flowers", "classify", str(ROOT / "deploy/photo.jpg")]),
    ]


class Server:
    """A server on free ports of the loopback, stopped at the end."""

    def __init__(self, program: Path, device: str, folder: Path) -> None:
        folder.mkdir()
        ports = folder / "ports.json"
        begun = time.monotonic()
        self.process = subprocess.Popen(
            [program, f"--model-repository={MODELS}", f"--devices={device}", "--listen=127.0.0.1:0",
             "--http-listen=127.0.0.1:0", f"--port-file={ports}", "--log-level=warning"]
        )  # fmt: skip
        while not ports.exists():
            if self.process.poll() is not None:
                raise RuntimeError(f"the server on {device} ended with {self.process.returncode} at its start")
            if time.monotonic() - begun > START_SECONDS:
                self.process.kill()
                raise RuntimeError(f"the server on {device} was not ready after {START_SECONDS:.0f} s")
            time.sleep(0.05)
        self.start_seconds = time.monotonic() - begun
        self.ports = json.loads(ports.read_text())

    def answer(self, client: Path, call: Call) -> Any:
        command = [client, f"--server=127.0.0.1:{self.ports['grpc']}", "--json", *call.arguments]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0])

    def requests(self, rpc: str) -> float:
        """The number of calls of this RPC in its metrics."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.ports['http']}/metrics", timeout=60) as page:
            lines = page.read().decode().splitlines()
        mine = [line for line in lines if line.startswith("longshort_requests_total{") and f'"{rpc}"' in line]
        return sum(float(line.rsplit(" ", 1)[1]) for line in mine)

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def numbers(answer: Any) -> dict[str, float]:
    """The answer's numbers by their place, of those that both servers must agree in."""
    found: dict[str, float] = {}

    def walk(value: Any, place: str) -> None:
        if isinstance(value, dict):
            for key, part in value.items():
                walk(part, f"{place}/{key}")
        elif isinstance(value, list):
            for index, part in enumerate(value):
                walk(part, f"{place}/{index}")
        elif re.search(r"(log_likelihood|probability|token_count)$", place):
            found[place] = float(value)

    walk(answer, "")
    return found


def texts(answer: Any) -> list[str]:
    """What was continued, and the labels in their order."""
    found = [str(one.get("text")) for one in answer.get("completions", [])]
    classification = answer.get("classification", answer)
    return found + [str(one.get("label")) for one in classification.get("classes", [])[:1]]


def difference(on_device: Any, on_cpu: Any) -> str:
    """What the two answers differ in; empty if nothing."""
    if texts(on_device) != texts(on_cpu):
        return f"{texts(on_device)} instead of {texts(on_cpu)}"
    mine, expected = numbers(on_device), numbers(on_cpu)
    if mine.keys() != expected.keys() or not (expected or texts(on_cpu)):
        return f"{on_device} instead of {on_cpu}"
    for place, value in expected.items():
        tolerance = PER_TOKEN * GPU_BYTES if place.endswith("log_likelihood") else PROBABILITY
        if not abs(mine[place] - value) <= tolerance:
            return f"{place} is {mine[place]} instead of {value}"
    return ""


def run(device: str, programs: Path) -> int:
    name = "longshort-server-with-emulated-gpus" if device.startswith("emulated:") else "longshort-server"
    client = programs / "longshort"
    failures = 0
    with tempfile.TemporaryDirectory(prefix="longshort-served-") as name_of_folder:
        folder = Path(name_of_folder)
        with (
            Server(programs / name, device, folder / "device") as on_device,
            Server(programs / name, "cpu", folder / "cpu") as on_cpu,
        ):
            print(f"started on {device} in {on_device.start_seconds:.1f} s, on cpu in {on_cpu.start_seconds:.1f} s")
            for call in calls(folder, device):
                before, begun = on_device.requests(call.rpc), time.monotonic()
                answer = on_device.answer(client, call)
                seconds = time.monotonic() - begun
                wrong = difference(answer, on_cpu.answer(client, call))
                if not wrong and on_device.requests(call.rpc) != before + 1:
                    wrong = f"longshort_requests_total does not count one call more of {call.rpc}"
                failures += bool(wrong)
                said = f"FAIL {call.name} ({call.rpc}): {wrong}" if wrong else f"ok   {call.name} ({call.rpc})"
                print(f"{said}, {seconds:.2f} s")
            for server, where in ((on_device, device), (on_cpu, "cpu")):
                status = server.stop()
                failures += status != 0
                print(f"{'FAIL' if status else 'ok  '} the server on {where} stops: exit code {status}")
    return 1 if failures else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", required=True)
    parser.add_argument("--programs", type=Path, required=True)
    arguments = parser.parse_args()
    sys.exit(run(arguments.device, arguments.programs))

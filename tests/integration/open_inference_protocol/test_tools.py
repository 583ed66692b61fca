"""The Open Inference Protocol, by KServe's client and NVIDIA's perf_analyzer as they are."""

from __future__ import annotations

import base64
import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from integration import open_inference
from integration.images import png, some_pixels
from integration.server_process import ROOT, Server, wait_until

PERF_ANALYZER = ROOT / "build/perf_analyzer/perf_analyzer"


def kserve(what: str, server: Server) -> Any:
    port = server.http_port if what == "rest" else server.grpc_port
    command = [
        sys.executable,
        Path(__file__).with_name("kserve_calls.py"),
        what,
        f"127.0.0.1:{port}",
    ]
    environment = {**os.environ, "no_proxy": "127.0.0.1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_kserves_client_gets_typed_answers(server: Server) -> None:
    found = kserve("families", server)
    assert (found["live"], found["ready"], found["models"]) == (True, True, [True, False])
    with open_inference.client_of(server) as client:
        documents = client.infer("texts", [open_inference.strings("document", b"good", b"bad")]).as_numpy("logits")
        pixels = np.array([17 * value % 256 for value in range(4 * 4 * 3)], np.uint8).reshape(4, 4, 3)
        image = client.infer("images", [open_inference.tensor("image", pixels, "UINT8")]).as_numpy("logits")
    for call in ("text", "classes", "pixels", "prompt", "score"):
        assert found[call]["typed"], call
    assert found["text"]["id"] == "mine"
    assert found["text"]["outputs"]["logits"] == pytest.approx(list(documents.ravel()), abs=1e-5)
    assert found["pixels"]["outputs"]["logits"] == pytest.approx(list(image.ravel()), abs=1e-5)
    (likeliest, _) = found["classes"]["outputs"]["logits"]
    assert int(likeliest.split(":")[1]) == int(np.argmax(documents[0]))
    assert found["prompt"]["outputs"]["finish_reason"] == ["length"]
    assert found["score"]["outputs"]["token_count"] == [5, 3]


def test_kserves_client_gets_the_same_answers_by_rest(server: Server) -> None:
    by_grpc, found = kserve("families", server), kserve("rest", server)
    assert (found["live"], found["ready"], found["models"]) == (True, True, [True, False])
    assert found["text"]["id"] == "mine"
    assert "inputs[0].data[0] is 7; it must be a string" in found["error"] and "400" in found["error"]
    for call in ("text", "classes", "pixels", "binary", "prompt", "score"):
        expected = by_grpc["pixels" if call == "binary" else call]["outputs"]
        assert found[call]["outputs"].keys() == expected.keys(), call
        for name, values in found[call]["outputs"].items():
            if isinstance(values[0], str) and ":" in values[0]:
                assert [value.split(":")[1:] for value in values] == [value.split(":")[1:] for value in expected[name]]
            elif isinstance(values[0], str):
                assert values == expected[name]
            else:
                assert values == pytest.approx(expected[name], abs=1e-5), call


def test_kserves_client_tries_again_what_a_stopping_server_refused(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--drain-delay=10m", "--model-control", "--log-format=json") as server:
        server.terminate()
        wait_until(lambda: server.http("/readyz")[0] != 200)
        assert kserve("refused", server)["code"] == "UNAVAILABLE"
        lines = [json.loads(line) for line in server.log().splitlines()]
    calls = [line for line in lines if line.get("rpc") == "RepositoryModelLoad"]
    assert [line["code"] for line in calls] == ["UNAVAILABLE"] * 3, "as often as its policy says"


def measured(server: Server, folder: Path, model: str, *arguments: str, protocol: str = "grpc") -> dict[str, str]:
    """The line of perf_analyzer's report."""
    report = folder / "report.csv"
    port = server.http_port if protocol == "http" else server.grpc_port
    command = [PERF_ANALYZER, "-m", model, "-i", protocol, "-u", f"127.0.0.1:{port}", "-f", report]
    # How fast is not what is tested: it measures so many requests, instead of until its figures are stable.
    quick = ["--request-count=50", "--verbose-csv"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(PERF_ANALYZER.parent), "no_proxy": "127.0.0.1"}
    for attempt in (1, 2, 3):
        # Once in a hundred runs the program stands still when it has all its answers, or aborts at its end: it is tried
        # again then. What it says of the server is another matter.
        try:
            done = subprocess.run(
                [*command, *quick, *arguments], capture_output=True, text=True, timeout=60, check=False, env=environment
            )
        except subprocess.TimeoutExpired:
            assert attempt < 3
            continue
        if done.returncode >= 0:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    with report.open() as file:
        (line,) = csv.DictReader(file)
    return line


def check_parts(line: dict[str, str]) -> None:
    """The times that the server reports add up to at most the latency that the client measured."""
    parts = [float(line[f"Server {part}"]) for part in ("Queue", "Compute Input", "Compute Infer", "Compute Output")]
    assert float(line["Server Compute Infer"]) > 0
    assert sum(parts) <= float(line["Avg latency"])


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_perf_analyzer_measures_documents_and_images(server: Server, tmp_path: Path, protocol: str) -> None:
    documents = ("texts", "--string-data=hello", "-b", "2", "--concurrency-range=2")
    line = measured(server, tmp_path, *documents, protocol=protocol)
    assert float(line["Inferences/Second"]) > 0
    check_parts(line)
    file = png(some_pixels(1))
    # Of BYTES it takes the raw form.
    content = base64.b64encode(len(file).to_bytes(4, "little") + file).decode()
    data = tmp_path / "images.json"
    data.write_text(json.dumps({"data": [{"image": {"b64": content}}]}))
    check_parts(measured(server, tmp_path, "images", f"--input-data={data}", protocol=protocol))


def test_perf_analyzer_measures_generations(server: Server, tmp_path: Path) -> None:
    data = tmp_path / "prompts.json"
    data.write_text(json.dumps({"data": [{"prompt": ["hello"]}, {"prompt": ["you"]}]}))
    parameter = "--request-parameter=max_tokens:5:int"
    line = measured(server, tmp_path, "tiny", f"--input-data={data}", "--streaming", parameter)
    assert float(line["Inferences/Second"]) > 0
    assert float(line["Server Compute Infer"]) > 0

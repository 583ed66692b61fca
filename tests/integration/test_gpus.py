"""The server with workers on GPUs, which are emulated: the processor runs their kernels (docs/gpu.md)."""

from __future__ import annotations

import platform
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from integration import classifier_directory
from integration.server_process import BINARY, Server, run

EMULATED = BINARY.parent / "longshort-server-with-emulated-gpus"

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the emulator switches stacks on x86-64 only")


# Graphs that loading captures, and runs once each: emulated ones are of 8 rows at the most.
GRAPHS = 9


def start(repository: Path, folder: Path, *arguments: str, fault: str = "") -> Server:
    # Threads that wait for each other's part of a tensor this small take the processor from the emulator.
    environment = {"OMP_NUM_THREADS": "1"} | ({"LONGSHORT_DEVICE_FAULT": fault} if fault else {})
    return Server(repository, folder, *arguments, program=EMULATED, environment=environment)


def stub(api: SimpleNamespace, server: Server) -> Any:
    return api.inference_grpc.InferenceStub(server.channel)


def generation(api: SimpleNamespace, prompt: str, **fields: object) -> Any:
    """Takes the likeliest tokens: a draw may fall so near the border of two that rounding decides."""
    return api.inference.GenerateRequest(
        prompt={"text": prompt}, max_tokens=6, sampling={"temperature": 0}, return_raw=True, **fields
    )


def answer(api: SimpleNamespace, server: Server, request: Any) -> bytes:
    return stub(api, server).Generate(request, timeout=60).completions[0].raw


@pytest.mark.parametrize("devices", ["emulated:0", "emulated:0,emulated:1,cpu"])
def test_streams_on_gpus_say_what_streams_on_the_cpu_say(
    api: SimpleNamespace, repository: Path, server: Server, tmp_path: Path, devices: str
) -> None:
    prompts = ["", "a", "the quick brown fox", "x" * 40]
    with start(repository, tmp_path, f"--devices={devices}") as gpus, ThreadPoolExecutor(len(prompts)) as clients:
        said = list(clients.map(lambda prompt: answer(api, gpus, generation(api, prompt or "b")), prompts))
        text = api.inference.ScoreTextRequest(inputs=[{"text": "the quick brown fox"}])
        score = stub(api, gpus).ScoreText(text, timeout=60).scores[0].log_likelihood
    assert said == [answer(api, server, generation(api, prompt or "b")) for prompt in prompts]
    expected = stub(api, server).ScoreText(text, timeout=60).scores[0].log_likelihood
    assert score == pytest.approx(expected, abs=1e-4)


def test_classifiers_run_on_gpus(api: SimpleNamespace, tmp_path: Path) -> None:
    classifier_directory.write_text(tmp_path / "models", "texts", documents=1)
    request = api.inference.ScoreTextRequest(inputs=[{"text": "some words"}, {"text": "x"}], all_logits=True)

    def logits(device: str) -> list[list[float]]:
        with start(tmp_path / "models", tmp_path / device.replace(":", "-"), f"--devices={device}") as running:
            answered = stub(api, running).ScoreText(request, timeout=60)
            return [list(text.classification.logits) for text in answered.classifications]

    for on_gpu, on_cpu in zip(logits("emulated:3"), logits("cpu"), strict=True):
        assert on_gpu == pytest.approx(on_cpu, abs=1e-4)


def test_a_conversation_goes_on_on_a_gpu(
    api: SimpleNamespace, repository: Path, server: Server, tmp_path: Path
) -> None:
    def talk(running: Server) -> list[bytes]:
        return [
            answer(api, running, generation(api, text, session={"id": "talk-of-test-gpus"}))
            for text in ("hello there", "and on")
        ]

    with start(repository, tmp_path, "--devices=emulated:0") as gpu:
        assert talk(gpu) == talk(server)


def test_after_a_failed_step_all_streams_go_on(
    api: SimpleNamespace, repository: Path, server: Server, tmp_path: Path
) -> None:
    with start(repository, tmp_path, "--devices=emulated:0", fault=f"error={GRAPHS + 3} replays") as gpu:
        requests = [generation(api, text) for text in ("abc", "defg", "h")]
        with ThreadPoolExecutor(len(requests)) as clients:
            said = list(clients.map(lambda request: answer(api, gpu, request), requests))
        assert said == [answer(api, server, request) for request in requests]
        assert gpu.metric("longshort_step_failures_total") == 1


def test_a_server_that_lost_a_gpu_finishes_what_others_can_and_ends_to_be_started_anew(
    api: SimpleNamespace, repository: Path, server: Server, tmp_path: Path
) -> None:
    # Loading opens a device for the prototype on each of two GPUs, and one more on each to warm it up.
    with start(repository, tmp_path, "--devices=emulated:0,emulated:1", fault=f"lost={GRAPHS + 3} replays@4") as gpus:
        requests = [generation(api, text) for text in ("abc", "defg", "h", "ijk", "lm", "n")]
        with ThreadPoolExecutor(len(requests)) as clients:
            said = list(clients.map(lambda request: answer(api, gpus, request), requests))
        assert said == [answer(api, server, request) for request in requests]
        assert gpus.wait() == 1
        assert "GPU lost" in gpus.log()
        assert "drained" in gpus.log()


def test_a_model_whose_graphs_cannot_be_captured_is_not_loaded(repository: Path, tmp_path: Path) -> None:
    # On the device that warms up, behind the prototype's.
    with pytest.raises(AssertionError, match="the emulated device was told to fail"):
        start(repository, tmp_path, "--devices=emulated:0", fault="error=7 replays@1")


def test_the_plan_of_a_gpus_memory_is_logged(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    with start(repository, tmp_path, "--devices=emulated:3,cpu", "--cache-bytes=20000000") as gpu:
        line = next(line for line in gpu.log().splitlines() if "model on GPU" in line)
    planned = dict(re.findall(r"(\w+)=(\S+)", line))
    assert planned["device"] == "emulated:3"
    assert int(planned["gpu_bytes"]) == 256 << 20
    assert int(planned["library_bytes"]) == (256 << 20) // 10
    assert int(planned["weight_bytes"]) > 0
    assert int(planned["workspace_bytes"]) > 0
    assert int(planned["cache_bytes"]) == 10000000


def test_a_model_that_does_not_fit_in_the_gpus_memory_is_refused(repository: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    shutil.copytree(repository, models)
    (models / "tiny" / "serving.json").write_text('{"devices": "emulated:2", "cache_bytes": 1073741824}')
    with pytest.raises(AssertionError, match="are left for the cache of model tiny"):
        start(models, tmp_path)


def test_devices_that_are_not_there_are_named(repository: Path, tmp_path: Path) -> None:
    refused = run(f"--model-repository={repository}", "--devices=emulated:0")
    assert refused.returncode == 1
    assert "emulated:0 is a GPU, and this build serves on the CPU only" in refused.stderr
    with pytest.raises(AssertionError, match="there is no emulated:8"):
        start(repository, tmp_path, "--devices=emulated:8")

"""The server with workers on GPUs, which are emulated: the processor runs their kernels (docs/gpu.md)."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from integration import classifier_directory
from integration.images import png
from integration.server_process import EMULATED, Server, run, wait_until

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the emulator switches stacks on x86-64 only")
MUCH_ARITHMETIC = pytest.mark.not_sanitized("much arithmetic; the C++ tests of models have the same steps")


# Graphs that loading captures, and runs once each: emulated ones have at most 4 rows, or 2 images.
GRAPHS = 6
IMAGE_GRAPHS = 2


def start(repository: Path, folder: Path, *arguments: str, fault: str = "") -> Server:
    environment = {"LONGSHORT_DEVICE_FAULT": fault} if fault else {}
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


@MUCH_ARITHMETIC
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


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of a classifier of texts and one of images."""
    folder = tmp_path_factory.mktemp("classifiers")
    classifier_directory.write_text(folder, "texts", documents=1)
    classifier_directory.write_cvt(folder, "images", shorter_side=24, height=24, width=24)
    return folder


def classify(api: SimpleNamespace, running: Server) -> list[list[float]]:
    """The logits of some texts and images, asked about at once."""
    texts = api.inference.ScoreTextRequest(
        model={"name": "texts"}, inputs=[{"text": "some words"}, {"text": "x"}], all_logits=True
    )
    pixels = np.random.default_rng(1).integers(0, 256, (2, 24, 24, 3), np.uint8)
    images = api.inference.ClassifyImageRequest(
        model={"name": "images"}, images=[{"encoded": png(image)} for image in pixels], all_logits=True
    )
    of_texts = stub(api, running).ScoreText.future(texts, timeout=60)
    of_images = stub(api, running).ClassifyImage.future(images, timeout=60)
    answers = [*of_texts.result().classifications, *of_images.result().results]
    return [list(answered.classification.logits) for answered in answers]


@pytest.fixture(scope="module")
def logits_on_cpu(api: SimpleNamespace, classifiers: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    with start(classifiers, tmp_path_factory.mktemp("on-cpu")) as running:
        return [pytest.approx(logits, abs=1e-4) for logits in classify(api, running)]


@MUCH_ARITHMETIC
def test_classifiers_answer_on_gpus_what_they_answer_on_the_cpu(
    api: SimpleNamespace, classifiers: Path, logits_on_cpu: list[Any], tmp_path: Path
) -> None:
    with start(classifiers, tmp_path, "--devices=emulated:3,emulated:1") as gpus:
        assert classify(api, gpus) == logits_on_cpu
        assert gpus.metric("longshort_step_failures_total") == 0


@MUCH_ARITHMETIC
def test_classifiers_in_bfloat16_answer_about_what_they_answer_on_the_cpu(
    api: SimpleNamespace, classifiers: Path, logits_on_cpu: list[Any], tmp_path: Path
) -> None:
    with start(classifiers, tmp_path, "--devices=emulated:0", "--precision=bf16") as gpu:
        said = classify(api, gpu)
        described = api.models_grpc.ModelsStub(gpu.channel).ListModels(api.models.ListModelsRequest(), timeout=60)
    assert said != logits_on_cpu
    for found, on_cpu in zip(said, logits_on_cpu, strict=True):
        assert found == pytest.approx(on_cpu.expected, abs=0.05)
    assert {model.precision for model in described.models} == {"bf16"}


def test_after_a_failed_batch_its_items_are_tried_again(
    api: SimpleNamespace, classifiers: Path, logits_on_cpu: list[Any], tmp_path: Path
) -> None:
    with start(classifiers, tmp_path, "--devices=emulated:0", fault=f"error={IMAGE_GRAPHS} replays") as gpu:
        assert classify(api, gpu) == logits_on_cpu
        assert gpu.metric("longshort_step_failures_total", model="images") == 1


def test_a_server_that_lost_a_gpu_of_a_classifier_ends_to_be_restarted(
    api: SimpleNamespace, classifiers: Path, logits_on_cpu: list[Any], tmp_path: Path
) -> None:
    with start(classifiers, tmp_path, "--devices=emulated:0", fault=f"lost={IMAGE_GRAPHS} replays") as gpu:
        assert classify(api, gpu) == logits_on_cpu
        assert gpu.wait() == 1
        assert "GPU lost" in gpu.log()


@MUCH_ARITHMETIC
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


def test_a_server_that_lost_a_gpu_finishes_what_others_can_and_ends_to_be_restarted(
    api: SimpleNamespace, repository: Path, server: Server, tmp_path: Path
) -> None:
    # One stream at a time on each GPU, so both have work.
    options = ("--devices=emulated:0,emulated:1", "--max-streams=2")
    with start(repository, tmp_path, *options, fault=f"lost={GRAPHS + 3} replays") as gpus:
        requests = [generation(api, text) for text in ("abc", "defg", "h", "ijk", "lm", "n")]
        with ThreadPoolExecutor(len(requests)) as clients:
            said = list(clients.map(lambda request: answer(api, gpus, request), requests))
        assert said == [answer(api, server, request) for request in requests]
        assert gpus.wait() == 1
        assert "GPU lost" in gpus.log()
        assert "drained" in gpus.log()


def test_a_worker_is_the_only_one_that_captures_its_graphs(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    # The fault is of a second device, which no one opens.
    with start(repository, tmp_path, "--devices=emulated:0", fault="error=0@1") as gpu:
        assert answer(api, gpu, generation(api, "a"))


# When the device is opened, and when its graphs are captured.
@pytest.mark.parametrize("fault", ["lost=4", f"lost={GRAPHS - 1} replays"])
def test_a_server_that_loses_a_gpu_while_it_loads_ends_to_be_restarted(
    repository: Path, tmp_path: Path, fault: str
) -> None:
    port_file = tmp_path / "ports.json"
    ended = subprocess.run(
        [EMULATED, f"--model-repository={repository}", "--devices=emulated:0", "--listen=127.0.0.1:0",
         "--http-listen=127.0.0.1:0", f"--port-file={port_file}"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "LONGSHORT_DEVICE_FAULT": fault},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "GPU lost" in ended.stderr
    assert ended.returncode == 1, ended.stderr


def test_a_model_whose_graphs_cannot_be_captured_is_not_loaded(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="injected failure of the emulated device"):
        start(repository, tmp_path, "--devices=emulated:0", fault=f"error={GRAPHS - 1} replays")


def memory_plans(server: Server, models: int) -> list[dict[str, str]]:
    """The fields of the line that each model on a GPU has in the log. The server writes its log asynchronously."""
    wait_until(lambda: server.log().count("model on GPU") == models)
    lines = [line for line in server.log().splitlines() if "model on GPU" in line]
    return [dict(re.findall(r"(\w+)=(\S+)", line)) for line in lines]


def test_the_plan_of_a_gpus_memory_is_logged(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    with start(repository, tmp_path, "--devices=emulated:3,cpu", "--cache-bytes=20000000") as gpu:
        (planned,) = memory_plans(gpu, 1)
    assert planned["device"] == "emulated:3"
    assert int(planned["gpu_bytes"]) == 256 << 20
    assert int(planned["library_bytes"]) == (256 << 20) // 10
    assert int(planned["weight_bytes"]) > 0
    assert int(planned["workspace_bytes"]) > 0
    assert int(planned["cache_bytes"]) == 10000000


def test_the_plan_of_classifiers_memory_is_logged(classifiers: Path, tmp_path: Path) -> None:
    with start(classifiers, tmp_path, "--devices=emulated:0", "--precision=bf16") as gpu:
        of_images, of_texts = memory_plans(gpu, 2)
    values_of_bytes = 16 + 3 * 256 * 4
    pixels_and_logits = IMAGE_GRAPHS * (3 * 24 * 24 + 7) * 4
    assert int(of_images["workspace_bytes"]) == values_of_bytes + pixels_and_logits
    assert int(of_images["weight_bytes"]) == (9898 + 240) * 2, "parameters, and the running statistics of batch norms"
    assert int(of_texts["workspace_bytes"]) > 64 * 2 * 4, "ids and positions of 32 bits"


def test_a_model_that_does_not_fit_in_the_gpus_memory_is_refused(repository: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    shutil.copytree(repository, models)
    (models / "tiny" / "serving.json").write_text('{"devices": "emulated:2", "cache_bytes": 1073741824}')
    with pytest.raises(AssertionError, match="the cache of model tiny needs 1073741824 bytes"):
        start(models, tmp_path)


def test_devices_that_are_not_there_are_named(repository: Path, tmp_path: Path) -> None:
    refused = run(f"--model-repository={repository}", "--devices=emulated:0")
    assert refused.returncode == 1
    assert "emulated:0 is a GPU, and this build serves on the CPU only" in refused.stderr
    with pytest.raises(AssertionError, match="there is no emulated:8"):
        start(repository, tmp_path, "--devices=emulated:8")

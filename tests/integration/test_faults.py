"""The server while its models throw, fail and stall: clients notice only delays. Several workers and versions."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import classifier_directory
from integration.server_process import FAULTY, ON_GPUS, Server, wait_until, workers

CLIENTS = 8
# An emulated GPU has time for some hundred steps.
ROUNDS, TALKS = (2, 2) if ON_GPUS else (6, 4)


def start(repository: Path, folder: Path, faults: str, *arguments: str) -> Server:
    return Server(repository, folder, *arguments, program=FAULTY, environment={"LONGSHORT_FAULTS": faults})


@pytest.fixture(scope="module")
def faulty(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("faulty")
    with start(repository, folder, "throw=41,fail=37,stall=97,stall-ms=20,no-replica=9", workers(2)) as server:
        yield server


def stub(api: SimpleNamespace, server: Server) -> Any:
    return api.inference_grpc.InferenceStub(server.channel)


def generation(api: SimpleNamespace, seed: int) -> Any:
    """Takes the likeliest tokens: a draw may fall so near the border of two that rounding decides."""
    random_bytes = random.Random(seed).randbytes(5 + 40 * (seed % 7))
    return api.inference.GenerateRequest(
        prompt={"raw": random_bytes}, max_tokens=20, sampling={"temperature": 0}, return_raw=True
    )


def test_streams_go_on_through_failures(api: SimpleNamespace, server: Server, faulty: Server) -> None:
    """Every answer is what a server without faults gives."""

    def say(client: int) -> None:
        for number in range(ROUNDS):
            request = generation(api, 100 * client + number)
            alone = stub(api, server).Generate(request, timeout=60).completions[0].raw
            events = list(stub(api, faulty).GenerateStream(request, timeout=60))
            assert b"".join(event.delta.raw for event in events) == alone

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(say, range(CLIENTS)))
    assert faulty.metric("longshort_step_failures_total") > 0
    assert faulty.metric("longshort_worker_rebuilds_total") > 0
    assert faulty.metric("longshort_streams_active") == 0
    wait_until(lambda: "error step failed model=tiny" in faulty.log())


def test_the_metrics_show_waiting_requests_while_a_step_hangs(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    """What the alert LongshortStandsStill reads."""
    models = tmp_path / "models"
    shutil.copytree(repository, models)
    classifier_directory.write_text(models, "texts", documents=1)
    prompt = api.inference.GenerateRequest(model={"name": "tiny"}, prompt={"text": "x"})
    document = api.inference.ScoreTextRequest(model={"name": "texts"}, inputs=[{"text": "x"}])
    with start(models, tmp_path, f"stall=1,stall-ms={10**7}") as server:
        running = [stub(api, server).Generate.future(prompt), stub(api, server).ScoreText.future(document)]
        wait_until(lambda: server.metric("longshort_streams_active", model="tiny") == 1)
        wait_until(lambda: server.metric("longshort_queue_duration_seconds_count", model="texts") == 1)
        assert server.metric("longshort_queued_requests") == server.metric("longshort_queued_items") == 0
        waiting = [stub(api, server).Generate.future(prompt) for _ in range(3)]
        waiting += [stub(api, server).ScoreText.future(document) for _ in range(4)]
        wait_until(lambda: server.metric("longshort_queued_requests", model="tiny") == 3)
        wait_until(lambda: server.metric("longshort_queued_items", model="texts") == 4)
        assert not any(call.done() for call in running + waiting)


def test_sessions_survive_failures(api: SimpleNamespace, server: Server, faulty: Server) -> None:
    for client in range(TALKS):
        for number in range(5):
            request = generation(api, 1000 + 10 * client + number)
            request.session.id = f"talk-{client}"
            answers = [stub(api, one).Generate(request, timeout=60) for one in (server, faulty)]
            assert answers[0].completions[0].raw == answers[1].completions[0].raw
            assert answers[0].session_tokens == answers[1].session_tokens


def test_documents_are_scored_through_failures(api: SimpleNamespace, tmp_path: Path) -> None:
    classifier_directory.write_text(tmp_path / "models", "texts", documents=1)
    documents = [f"document {number}" for number in range(200)]

    def scores(running: Server) -> dict[int, list[float]]:
        requests = [api.inference.ScoreTextsRequest(id=i, input={"text": text}) for i, text in enumerate(documents)]
        requests[0].options.all_logits = True
        answers = stub(api, running).ScoreTexts(iter(requests), timeout=60)
        return {answer.id: list(answer.classification.classification.logits) for answer in answers}

    with Server(tmp_path / "models", tmp_path / "sound") as sound:
        expected = scores(sound)
    arguments = (workers(2), "--max-batch-size=1")
    with start(tmp_path / "models", tmp_path / "faulty", "throw=101,fail=47", *arguments) as faulty:
        found = scores(faulty)
        assert faulty.metric("longshort_step_failures_total") > 0
        assert faulty.metric("longshort_worker_rebuilds_total") > 0
    assert found.keys() == expected.keys() == set(range(len(documents)))
    for number, logits in expected.items():
        assert found[number] == pytest.approx(logits, abs=1e-5)


def test_a_model_that_always_throws_ends_its_requests_and_the_server_lives(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    with start(repository, tmp_path, "throw=1") as broken:
        with pytest.raises(grpc.RpcError) as error:
            stub(api, broken).Generate(generation(api, 1), timeout=30)
        assert error.value.code() == grpc.StatusCode.INTERNAL
        assert "injected" in error.value.details()
        wait_until(lambda: broken.metric("longshort_streams_active") == 0)

"""Who may call: tokens, scopes and identities."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from integration import expect, model_directory, tokens
from integration.access_calls import DENIED, UNAUTHENTICATED, Calls, get, metrics
from integration.server_process import Server, wait_until
from integration.tokens import bearer

LINES = (
    tokens.line("alice", "a1"),
    tokens.line("alice", "a2"),
    tokens.line("bob", "b"),
    tokens.line("al", "al"),
    tokens.line("old", "past", "scopes=infer expires=2020-01-01"),
    tokens.line("reader", "infer", "scopes=infer"),
    tokens.line("operator", "manage", "scopes=manage"),
    tokens.line("scraper", "observe", "scopes=observe"),
    tokens.line("guest", "guest", "scopes=infer,sessions,manage models=tiny,later*"),
    tokens.line("visitor", "none", "scopes=infer models=other"),
)


@pytest.fixture(scope="module")
def two_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("two")
    model_directory.write(repository)
    model_directory.write(repository, name="secret", seed=2)
    return repository


@pytest.fixture(scope="module")
def guarded(two_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a token file."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "key").write_bytes(os.urandom(32))
    (folder / "key").chmod(0o600)
    file = tokens.write(folder / "tokens", *LINES)
    options = (f"--token-file={file}", f"--session-key-file={folder / 'key'}", "--model-control")
    with Server(two_models, folder, *options) as server:
        yield server


@pytest.fixture
def calls(api: SimpleNamespace, guarded: Server) -> Calls:
    return Calls(api, guarded)


def test_a_call_without_a_valid_token_is_refused(calls: Calls, guarded: Server) -> None:
    with expect.error(UNAUTHENTICATED, "authorization: Bearer TOKEN", "longshort token new"):
        calls.generate([])
    with expect.error(UNAUTHENTICATED, "authorization: Bearer TOKEN"):
        calls.generate([("x-client-id", "alice")])
    with expect.error(UNAUTHENTICATED, "unknown to this server"):
        calls.generate(bearer("a-secret-of-another"))
    with expect.error(UNAUTHENTICATED, "the token of old expired at 2020-01-01"):
        calls.generate(bearer("past"))
    with expect.error(UNAUTHENTICATED, "not of the form"):
        calls.generate([("authorization", "Basic YTpi")])
    with expect.error(UNAUTHENTICATED, "not of the form"):
        calls.generate([*bearer("a1"), *bearer("b")])
    assert calls.generate(bearer("a1")).completions
    assert calls.generate([("authorization", "bearer a2")]).completions
    assert "a-secret-of-another" not in guarded.log()


def test_every_kind_of_call_asks(calls: Calls) -> None:
    api = calls.api
    streams = (
        lambda: list(calls.inference.GenerateStream(api.inference.GenerateRequest(), timeout=60)),
        lambda: list(calls.inference.ScoreTexts(iter([api.inference.ScoreTextsRequest()]), timeout=60)),
        lambda: calls.inference.ScoreText(api.inference.ScoreTextRequest(), timeout=60),
        lambda: calls.inference.ClassifyImage(api.inference.ClassifyImageRequest(), timeout=60),
        lambda: calls.tokenize([]),
        lambda: calls.list([]),
        lambda: calls.models.GetModel(api.models.GetModelRequest(), timeout=60),
        lambda: calls.models.LoadModel(api.models.LoadModelRequest(), timeout=60),
        lambda: calls.models.UnloadModel(api.models.UnloadModelRequest(), timeout=60),
        lambda: calls.close([], "s"),
        lambda: calls.export([], "s"),
        lambda: calls.bring([], "s", []),
    )
    for call in streams:
        with expect.error(UNAUTHENTICATED, "authorization: Bearer TOKEN"):
            call()


def test_scopes_cover_their_calls(calls: Calls) -> None:
    assert calls.generate(bearer("infer")).completions
    assert set(calls.list(bearer("infer"))) >= {"tiny", "secret"}
    with expect.error(DENIED, "Generate with session needs the scope sessions", "reader"):
        calls.generate(bearer("infer"), session="s")
    request = calls.api.inference.ScoreTextRequest(model={"name": "tiny"}, inputs=[{"text": "a"}], session={"id": "s"})
    with expect.error(DENIED, "needs the scope sessions"):
        calls.inference.ScoreText(request, metadata=bearer("infer"))
    with expect.error(DENIED, "CloseSession needs the scope sessions"):
        calls.close(bearer("infer"), "s")
    with expect.error(DENIED, "LoadModel needs the scope manage"):
        calls.models.LoadModel(calls.api.models.LoadModelRequest(model={"name": "tiny"}), metadata=bearer("a1"))
    with expect.error(DENIED, "Generate needs the scope infer"):
        calls.generate(bearer("manage"))
    loaded = calls.models.LoadModel(
        calls.api.models.LoadModelRequest(model={"name": "tiny"}), metadata=bearer("manage")
    )
    assert loaded.name == "tiny"


def test_metrics_need_a_token_that_observes_and_probes_need_none(guarded: Server) -> None:
    status, body, challenge = get(guarded, "/metrics")
    assert (status, challenge) == (401, "Bearer") and "authorization: Bearer TOKEN" in body
    assert get(guarded, "/metrics", "Bearer wrong")[0] == 401
    assert get(guarded, "/metrics", "Bearer infer")[0] == 403
    assert "longshort_build_info" in metrics(guarded)
    assert get(guarded, "/livez")[0] == 200
    assert get(guarded, "/readyz")[0] == 200


def check_health(server: Server, metadata: tokens.Metadata, service: str = "tiny") -> int:
    stub = health_pb2_grpc.HealthStub(server.channel)
    return stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=60, metadata=metadata).status


def test_health_is_open_and_reflection_is_not(guarded: Server) -> None:
    serving = health_pb2.HealthCheckResponse.SERVING
    assert check_health(guarded, []) == serving
    assert check_health(guarded, bearer("wrong")) == serving
    watch = health_pb2_grpc.HealthStub(guarded.channel).Watch(health_pb2.HealthCheckRequest(service="tiny"), timeout=60)
    assert next(watch).status == serving
    watch.cancel()
    names = guarded.channel.unary_unary("/grpc.health.v1.Health/List")
    reflection = reflection_pb2_grpc.ServerReflectionStub(guarded.channel).ServerReflectionInfo

    def services(metadata: tokens.Metadata) -> list[str]:
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        answer = next(reflection(iter([request]), timeout=60, metadata=metadata))
        return [service.name for service in answer.list_services_response.service]

    for call in (lambda metadata: names(b"", timeout=60, metadata=metadata), services):
        with expect.error(UNAUTHENTICATED, "authorization: Bearer TOKEN"):
            call([])
        with expect.error(DENIED, "needs the scope observe"):
            call(bearer("a1"))
    assert b"secret" in names(b"", timeout=60, metadata=bearer("observe"))
    assert "longshort.v1.Inference" in services(bearer("observe"))


def test_health_is_closed_if_the_operator_says_so(repository: Path, tmp_path: Path) -> None:
    file = tokens.write(
        tmp_path / "tokens", tokens.line("alice", "a1"), tokens.line("scraper", "observe", "scopes=observe")
    )
    with Server(repository, tmp_path, f"--token-file={file}", "--protect-health") as server:
        with expect.error(UNAUTHENTICATED, "authorization: Bearer TOKEN"):
            check_health(server, [])
        with expect.error(DENIED, "needs the scope observe"):
            check_health(server, bearer("a1"))
        assert check_health(server, bearer("observe")) == health_pb2.HealthCheckResponse.SERVING
        assert get(server, "/readyz")[0] == 200


def test_two_identities_on_one_connection_are_distinguished_call_by_call(calls: Calls, guarded: Server) -> None:
    """One channel, and so one HTTP/2 connection: what one call showed is nothing that another has."""

    def ask(i: int) -> str:
        who, token = (("alice", "a1"), ("bob", "b"), ("visitor", "none"), ("", None))[i % 4]
        metadata = [] if token is None else bearer(token)
        metadata.append(("x-request-id", f"apart-{i}"))
        try:
            calls.generate(metadata)
        except grpc.RpcError as error:
            return f"{who} {error.code().name}"
        return f"{who} OK"

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(200)))
    assert set(answers) == {"alice OK", "bob OK", "visitor PERMISSION_DENIED", " UNAUTHENTICATED"}
    # Strangers share a line a second.
    wait_until(lambda: len(re.findall(r" id=apart-\d+ .*identity=", guarded.log())) == 150)
    lines = {int(found[1]): found[0] for found in re.finditer(r".* id=apart-(\d+) .*", guarded.log())}
    for i, line in lines.items():
        who = ("identity=alice ", "identity=bob ", "identity=visitor ", None)[i % 4]
        assert (who in line) if who is not None else ("identity=" not in line), line


def test_naming_anothers_session_does_not_reach_it(calls: Calls) -> None:
    calls.generate(bearer("a1"), session="diary")
    assert calls.go_on(bearer("a2"), "diary").session_tokens == 9, "another token of the same identity"
    parts = calls.export(bearer("a1"), "diary")
    # "al" + "ice"... : no way of putting names together makes alice's session out of another's.
    thieves = (bearer("b"), bearer("b", "alice"), bearer("al", "ice"), bearer("al"), bearer("guest", "alice"))
    for thief in thieves:
        for name in ("diary", "alice.diary", "alice:diary"):
            with expect.error(grpc.StatusCode.NOT_FOUND, name):
                calls.go_on(thief, name)
            with expect.error(grpc.StatusCode.NOT_FOUND):
                calls.export(thief, name)
            with expect.error(grpc.StatusCode.NOT_FOUND):
                calls.close(thief, name)
        with expect.error(DENIED, "another client"):
            calls.bring(thief, "mine", parts)
    for forged in ("alice/diary", "/alice/", "../alice"):
        with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "session"):
            calls.generate(bearer("b"), session=forged)
        with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "x-client-id"):
            calls.generate(bearer("b", forged), session="diary")
    assert calls.bring(bearer("a2"), "copy", parts).session_tokens == 9
    calls.close(bearer("a1"), "diary")


def test_x_client_id_only_divides_its_own_identity(calls: Calls) -> None:
    calls.generate(bearer("a1", "phone"), session="notes")
    calls.generate(bearer("a1", "laptop"), session="notes", prompt="abcdef")
    assert calls.go_on(bearer("a2", "phone"), "notes").session_tokens == 3 + 4 + 1 + 1
    assert calls.go_on(bearer("a1", "laptop"), "notes").session_tokens == 6 + 4 + 1 + 1
    with expect.error(grpc.StatusCode.NOT_FOUND):
        calls.go_on(bearer("a1"), "notes")
    with expect.error(grpc.StatusCode.NOT_FOUND):
        calls.go_on(bearer("b", "phone"), "notes")
    with expect.error(DENIED, "another client"):
        calls.bring(bearer("a1", "laptop"), "moved", calls.export(bearer("a1", "phone"), "notes"))


def test_a_server_without_tokens_takes_no_session_of_an_identity(
    api: SimpleNamespace, calls: Calls, guarded: Server, two_models: Path, tmp_path: Path
) -> None:
    """That server trusts every client id: with the same key, a client could import another's session."""
    calls.generate(bearer("a1"), session="kept")
    parts = calls.export(bearer("a1"), "kept")
    with Server(two_models, tmp_path, f"--session-key-file={guarded.port_file.with_name('key')}") as open_server:
        there = Calls(api, open_server)
        for client in (None, "alice", "alice:", "alice.kept"):
            with expect.error(DENIED, "another client"):
                there.bring([] if client is None else [("x-client-id", client)], "kept", parts)
        there.generate([("x-client-id", "alice")], session="mine")
        with expect.error(DENIED, "another client"):
            calls.bring(bearer("a1"), "mine", there.export([("x-client-id", "alice")], "mine"))


def test_models_that_one_may_not_use_are_not_there(calls: Calls) -> None:
    api = calls.api
    assert calls.list(bearer("guest")) == ["tiny"]
    assert calls.list(bearer("none")) == []
    assert calls.generate(bearer("guest"), model="").model.name == "tiny", "the only one that its identity allows"
    secret, nothing = (
        pytest.raises(grpc.RpcError, calls.generate, bearer("guest"), model=name).value
        for name in ("secret", "nowhere")
    )
    assert secret.code() == nothing.code() == DENIED
    assert secret.details().replace("secret", "nowhere") == nothing.details(), "a client cannot learn whether it exists"
    error = pytest.raises(grpc.RpcError, calls.generate, bearer("guest"), model="later1").value
    assert "tiny" in error.details() and "secret" not in error.details()
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "a model must be named", "no loaded model"):
        calls.tokenize(bearer("none"), model="")
    with expect.error(DENIED, "secret"):
        calls.models.GetModel(api.models.GetModelRequest(model={"name": "secret"}), metadata=bearer("guest"))
    with expect.error(DENIED, "secret"):
        calls.models.UnloadModel(api.models.UnloadModelRequest(model={"name": "secret"}), metadata=bearer("guest"))
    stream = calls.inference.ScoreTexts(
        iter([api.inference.ScoreTextsRequest(options={"model": {"name": "secret"}}, input={"text": "a"})]),
        metadata=bearer("guest"),
    )
    with expect.error(DENIED, "secret"):
        list(stream)


def test_metrics_stay_bounded_whatever_clients_call_themselves(calls: Calls, guarded: Server) -> None:
    def series() -> set[str]:
        found = re.findall(r"^(longshort_\w+(?:\{.*\})?) ", metrics(guarded), re.MULTILINE)
        return {name for name in found if "_bucket" not in name}

    for metadata in ([], bearer("a1")):
        for _ in range(2):
            pytest.raises(grpc.RpcError, calls.tokenize, metadata, model="nowhere")
            calls.tokenize(bearer("a1", "x"))
    before = series()
    names = [f"client-{random.Random(i).getrandbits(64):x}" for i in range(1000)]

    def ask(name: str) -> None:
        calls.tokenize(bearer("a1", name))
        pytest.raises(grpc.RpcError, calls.tokenize, [("x-client-id", name)], model=name)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, names))
    assert series() == before
    assert 'longshort_identity_requests_total{code="OK",identity="alice"}' in before

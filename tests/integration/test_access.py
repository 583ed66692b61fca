"""Who may call: tokens, scopes, identities and their limits."""

from __future__ import annotations

import os
import random
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from integration import expect, model_directory, tokens
from integration.certificates import Authority, write_at_once
from integration.server_process import BINARY, Server, run, wait_until
from integration.tokens import bearer

CLIENT = BINARY.with_name("longshort")
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
DENIED = grpc.StatusCode.PERMISSION_DENIED
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED

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
    tokens.line("nobody", "none", "scopes=infer models=other"),
)


@pytest.fixture(scope="module")
def two_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("two")
    model_directory.write(repository)
    model_directory.write(repository, name="secret", seed=2)
    return repository


@pytest.fixture(scope="module")
def guarded(two_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that asks who calls."""
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


class Calls:
    """Calls of one connection, each with its own metadata."""

    def __init__(self, api: SimpleNamespace, server: Server, channel: grpc.Channel | None = None) -> None:
        channel = channel or server.channel
        self.api = api
        self.inference = api.inference_grpc.InferenceStub(channel)
        self.models = api.models_grpc.ModelsStub(channel)
        self.sessions = api.sessions_grpc.SessionsStub(channel)

    def generate(
        self,
        metadata: tokens.Metadata,
        session: str | None = None,
        model: str = "tiny",
        prompt: str = "abc",
        **more: Any,
    ) -> Any:
        request = self.api.inference.GenerateRequest(max_tokens=4, model={"name": model}, **more)
        if prompt:
            request.prompt.text = prompt
        if session is not None:
            request.session.id = session
        return self.inference.Generate(request, timeout=60, metadata=metadata)

    def go_on(self, metadata: tokens.Metadata, session: str) -> Any:
        """Goes on with a session that must be there."""
        request = self.api.inference.GenerateRequest(
            max_tokens=1, model={"name": "tiny"}, session={"id": session, "must_exist": True}, prompt={"text": "d"}
        )
        return self.inference.Generate(request, timeout=60, metadata=metadata)

    def tokenize(self, metadata: tokens.Metadata, model: str = "tiny") -> Any:
        request = self.api.inference.TokenizeRequest(model={"name": model}, input={"text": "abc"})
        return self.inference.Tokenize(request, timeout=60, metadata=metadata)

    def close(self, metadata: tokens.Metadata, session: str) -> None:
        request = self.api.sessions.CloseSessionRequest(model={"name": "tiny"}, session_id=session)
        self.sessions.CloseSession(request, timeout=60, metadata=metadata)

    def export(self, metadata: tokens.Metadata, session: str) -> list[Any]:
        request = self.api.sessions.ExportSessionRequest(model={"name": "tiny"}, session_id=session)
        return list(self.sessions.ExportSession(request, timeout=60, metadata=metadata))

    def bring(self, metadata: tokens.Metadata, session: str, parts: list[Any]) -> Any:
        """Imports what was exported."""
        message = self.api.sessions.ImportSessionRequest
        beginning = {"model": {"name": "tiny"}, "session_id": session}
        requests = [message(beginning=beginning), *(message(part=part) for part in parts)]
        return self.sessions.ImportSession(iter(requests), timeout=60, metadata=metadata)

    def list(self, metadata: tokens.Metadata) -> list[str]:
        request = self.api.models.ListModelsRequest()
        return [model.name for model in self.models.ListModels(request, timeout=60, metadata=metadata).models]


def get(server: Server, path: str, *authorization: str) -> tuple[int, str, str]:
    """Status, body and WWW-Authenticate of a GET."""
    request = urllib.request.Request(f"http://127.0.0.1:{server.http_port}{path}")
    for value in authorization:
        request.add_header("Authorization", value)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return answer.status, answer.read().decode(), ""
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers.get("WWW-Authenticate", "")


def metrics(server: Server, token: str = "observe") -> str:
    status, body, _ = get(server, "/metrics", f"Bearer {token}")
    assert status == 200
    return body


def wait_until_taken(call: Callable[[], object]) -> None:
    """Returns when the server has seen the changed file: the call ends well."""

    def ends_well() -> bool:
        try:
            call()
        except grpc.RpcError as error:
            assert error.code() == UNAUTHENTICATED, error
            return False
        return True

    wait_until(ends_well)


def test_who_shows_no_valid_token_is_not_let_in(calls: Calls, guarded: Server) -> None:
    with expect.error(UNAUTHENTICATED, "authorization: Bearer TOKEN", "longshort token new"):
        calls.generate([])
    with expect.error(UNAUTHENTICATED, "authorization: Bearer TOKEN"):
        calls.generate([("x-client-id", "alice")])
    with expect.error(UNAUTHENTICATED, "not one of this server's"):
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


def test_two_identities_on_one_connection_are_told_apart_call_by_call(calls: Calls, guarded: Server) -> None:
    """One channel, and so one HTTP/2 connection: what one call showed is nothing that another has."""

    def ask(i: int) -> str:
        who, token = (("alice", "a1"), ("bob", "b"), ("nobody", "none"), ("", None))[i % 4]
        metadata = [] if token is None else bearer(token)
        metadata.append(("x-request-id", f"apart-{i}"))
        try:
            calls.generate(metadata)
        except grpc.RpcError as error:
            return f"{who} {error.code().name}"
        return f"{who} OK"

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(200)))
    assert set(answers) == {"alice OK", "bob OK", "nobody PERMISSION_DENIED", " UNAUTHENTICATED"}
    wait_until(lambda: len(re.findall(r" id=apart-\d+ ", guarded.log())) == 200)
    lines = {int(found[1]): found[0] for found in re.finditer(r".* id=apart-(\d+) .*", guarded.log())}
    for i, line in lines.items():
        who = ("identity=alice ", "identity=bob ", "identity=nobody ", None)[i % 4]
        assert (who in line) if who is not None else ("identity=" not in line), line


def test_nobody_reaches_anothers_session_by_naming_it(calls: Calls) -> None:
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
    """There everybody is who he says: with the same key he could take what was exported here."""
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
    assert calls.generate(bearer("guest"), model="").model.name == "tiny", "the only one that he may use"
    secret, nothing = (
        pytest.raises(grpc.RpcError, calls.generate, bearer("guest"), model=name).value
        for name in ("secret", "nowhere")
    )
    assert secret.code() == nothing.code() == DENIED
    assert secret.details().replace("secret", "nowhere") == nothing.details(), "nobody learns whether it is there"
    error = pytest.raises(grpc.RpcError, calls.generate, bearer("guest"), model="later1").value
    assert "tiny" in error.details() and "secret" not in error.details()
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "a model must be named", "none"):
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


def test_a_changed_file_adds_and_revokes(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    observe = tokens.line("scraper", "observe", "scopes=observe")
    file = tokens.write(tmp_path / "tokens", tokens.line("alice", "first"), observe)
    with Server(repository, tmp_path, f"--token-file={file}") as server:
        calls = Calls(api, server)
        calls.generate(bearer("first"), session="s")
        tokens.write(file, tokens.line("alice", "first"), tokens.line("alice", "second"), observe)
        wait_until_taken(lambda: calls.tokenize(bearer("second")))
        calls.tokenize(bearer("first"))
        tokens.write(file, tokens.line("alice", "second"), tokens.line("bob", "third"), observe)
        wait_until_taken(lambda: calls.tokenize(bearer("third")))
        with expect.error(UNAUTHENTICATED, "not one of this server's"):
            calls.tokenize(bearer("first"))
        assert calls.go_on(bearer("second"), "s").session_tokens == 9, "the identity and what it has stay"
        wait_until(lambda: server.log().count("the token file has changed, and holds now") == 2)

        def failures() -> int:
            return int(
                float(re.search(r"^longshort_token_file_failures_total (\S+)", metrics(server), re.MULTILINE)[1])
            )

        assert failures() == 0
        tokens.write(file, tokens.line("alice", "fourth"), "mallory scopes=all\n")
        wait_until(lambda: failures() == 1)
        wait_until(lambda: "is wrong: what it said before holds" in server.log())
        assert "line 2: scopes is" in server.log()
        calls.tokenize(bearer("second"))
        with expect.error(UNAUTHENTICATED):
            calls.tokenize(bearer("fourth"))


def test_an_identity_makes_so_many_calls_a_second(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    rest = "scopes=infer calls-per-second=4"
    lines = [tokens.line("alice", "a1", rest), tokens.line("alice", "a2", rest), tokens.line("bob", "b")]
    file = tokens.write(tmp_path / "tokens", *lines, tokens.line("scraper", "observe", "scopes=observe"))
    with Server(repository, tmp_path, f"--token-file={file}") as server:
        calls = Calls(api, server)
        refused = []
        begin = time.monotonic()
        for i in range(40):
            try:
                calls.tokenize(bearer(("a1", "a2")[i % 2]))
            except grpc.RpcError as error:
                refused.append(error)
            calls.tokenize(bearer("b"))
        most = 4 + 4 * (time.monotonic() - begin) + 1
        assert 4 <= 40 - len(refused) <= most, "a second's worth at once, then so many a second"
        assert refused[-1].code() == EXHAUSTED
        assert "identity alice has used its 4 calls a second" in refused[-1].details()
        counted = f'longshort_identity_requests_total{{code="RESOURCE_EXHAUSTED",identity="alice"}} {len(refused)}\n'
        assert counted in metrics(server), "metrics and log know whose calls are refused"
        wait_until(lambda: server.log().count("code=RESOURCE_EXHAUSTED") == len(refused))
        assert len(re.findall("code=RESOURCE_EXHAUSTED .*identity=alice", server.log())) == len(refused)
        for _ in range(3):
            error = pytest.raises(grpc.RpcError, lambda: [calls.tokenize(bearer("a1")) for _ in range(100)]).value
            wait = tokens.retry_delay(error)
            assert 0 < wait <= 0.25
            time.sleep(wait)
            calls.tokenize(bearer("a2"))


def test_an_identity_takes_so_many_tokens_a_second_and_pays_what_it_owes(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    file = tokens.write(
        tmp_path / "tokens",
        tokens.line("alice", "a", "scopes=infer tokens-per-second=100"),
        tokens.line("carol", "c", "scopes=infer tokens-per-second=1000"),
        tokens.line("bob", "b"),
    )
    with Server(repository, tmp_path, f"--token-file={file}") as server:
        calls = Calls(api, server)
        begin = time.monotonic()
        request = api.inference.GenerateRequest(prompt={"text": "x" * 50}, max_tokens=200)
        events = list(calls.inference.GenerateStream(request, metadata=bearer("a"), timeout=60))
        assert events[-1].summary.usage.generated_tokens == 200, "what is begun is not cut off"
        error = pytest.raises(grpc.RpcError, calls.generate, bearer("a")).value
        took = time.monotonic() - begin
        assert error.code() == EXHAUSTED and "its 100 tokens a second" in error.details()
        wait = tokens.retry_delay(error)
        # 250 were taken and 100 were there: 1.5 s, less what has passed.
        assert 1.5 - took - 0.01 <= wait <= 1.5
        calls.generate(bearer("b"))
        time.sleep(wait)
        calls.generate(bearer("a"))

        # Documents of a stream are held until there is room, and none is refused.
        def documents() -> Iterator[Any]:
            for i in range(30):
                yield api.inference.ScoreTextsRequest(id=i, input={"text": "y" * 100})

        begin = time.monotonic()
        assert len(list(calls.inference.ScoreTexts(documents(), metadata=bearer("c"), timeout=60))) == 30
        assert time.monotonic() - begin > 1.5, "3,000 tokens, of which 1,000 were there and the last 100 may be owed"


def test_a_client_certificate_is_an_identity(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    servers, clients = Authority("servers"), Authority("clients")
    certificate, key = servers.server().write(tmp_path, "server")
    file = tokens.write(
        tmp_path / "tokens",
        "web spiffe-id=spiffe://example.org/web scopes=infer,sessions\n",
        "ops certificate-subject=CN=ops scopes=infer,sessions\n",
        tokens.line("alice", "a1"),
    )
    options = (f"--tls-certificate={certificate}", f"--tls-key={key}", f"--token-file={file}")
    authority = write_at_once(tmp_path / "clients.pem", clients.pem)
    with Server(repository, tmp_path, *options, f"--tls-client-ca={authority}", trusted=servers.pem) as server:

        def calls_of(*names: str) -> Calls:
            pair = clients.client(*names)
            credentials = grpc.ssl_channel_credentials(servers.pem, pair.key_pem, pair.certificate_pem)
            local = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
            return Calls(api, server, grpc.secure_channel(f"127.0.0.1:{server.grpc_port}", credentials, local))

        web, ops = calls_of("anything", "spiffe://example.org/web"), calls_of("ops")
        web.generate([("x-request-id", "by-web")], session="s")
        ops.generate([("x-request-id", "by-ops"), ("x-client-id", "web")], session="s", prompt="abcdef")
        assert web.go_on([], "s").session_tokens == 3 + 4 + 1 + 1
        assert ops.go_on([("x-client-id", "web")], "s").session_tokens == 6 + 4 + 1 + 1
        wait_until(lambda: re.search(r"id=by-web .*identity=web", server.log()) is not None)
        wait_until(lambda: re.search(r"id=by-ops .*identity=ops", server.log()) is not None)
        with expect.error(UNAUTHENTICATED, "subject", "CN=stranger", "in no line"):
            calls_of("stranger").generate([])
        with expect.error(UNAUTHENTICATED, "SPIFFE id", "spiffe://example.org/other"):
            calls_of("ops", "spiffe://example.org/other").generate([])
        # On the connection of a certificate a token is its own identity's, call by call.
        assert ops.generate([*bearer("a1"), ("x-request-id", "by-alice")]).completions
        with expect.error(UNAUTHENTICATED, "not one of this server's"):
            ops.generate(bearer("a2"))
        with expect.error(grpc.StatusCode.NOT_FOUND, "s"):
            ops.go_on(bearer("a1"), "s")
        wait_until(lambda: re.search(r"id=by-alice .*identity=alice", server.log()) is not None)
        ops.go_on([("x-client-id", "web")], "s")
        # What the file takes away is taken from connections that are open, too.
        tokens.write(file, "web spiffe-id=spiffe://example.org/web scopes=infer\n", tokens.line("bob", "b"))
        wait_until_taken(lambda: ops.tokenize(bearer("b")))
        with expect.error(UNAUTHENTICATED, "CN=ops"):
            ops.tokenize([])
        web.tokenize([])


def test_a_token_of_the_client_program_is_taken(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    def new(*arguments: str) -> list[str]:
        command = [CLIENT, "token", "new", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()

    (plain, first), (narrow, second) = (
        new("alice"),
        new(
            "batch",
            "--scopes=infer",
            "--models=tiny",
            "--calls-per-second=100",
            "--tokens-per-second=1e6",
            "--expires=30d",
        ),
    )
    file = tokens.write(tmp_path / "tokens", f"{first}\n{second}\n")
    with Server(repository, tmp_path, f"--token-file={file}") as server:
        calls = Calls(api, server)
        assert calls.generate(bearer(plain), session="s").completions
        assert calls.generate(bearer(narrow)).completions
        with expect.error(DENIED, "sessions"):
            calls.generate(bearer(narrow), session="s")


def test_certificates_that_no_client_can_show_are_told(repository: Path, tmp_path: Path) -> None:
    file = tokens.write(tmp_path / "tokens", "web spiffe-id=spiffe://example.org/web scopes=infer")
    with Server(repository, tmp_path, f"--token-file={file}") as server:
        wait_until(lambda: "without --tls-client-ca no client shows one" in server.log())


def test_a_token_file_that_is_wrong_is_refused_at_the_start(repository: Path, tmp_path: Path) -> None:
    file = tokens.write(tmp_path / "tokens", tokens.line("alice", "a", "scopes=everything"))
    for more in ([], ["--check-config"]):
        done = run(f"--model-repository={repository}", f"--token-file={file}", *more)
        assert done.returncode == 1
        assert f"--token-file={file}, line 1: scopes is" in done.stderr
    tokens.write(file, tokens.line("alice", "a")).chmod(0o604)
    done = run(f"--model-repository={repository}", f"--token-file={file}")
    assert done.returncode == 1 and "may be used by everybody on this machine" in done.stderr
    done = run(f"--model-repository={repository}", "--protect-health")
    assert done.returncode == 1 and "--protect-health needs --token-file" in done.stderr


def test_without_a_token_file_everybody_is_who_he_says(api: SimpleNamespace, server: Server) -> None:
    """What a client shows is not looked at."""
    calls = Calls(api, server)
    calls.generate([*bearer("whatever"), ("x-client-id", "alice")], session="plain")
    assert calls.go_on([("x-client-id", "alice")], "plain").session_tokens == 9
    calls.close([("x-client-id", "alice")], "plain")
    assert server.http("/metrics")[0] == 200


def test_calls_and_reloads_do_not_disturb_each_other(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    file = tokens.write(tmp_path / "tokens", tokens.line("alice", "a"))
    with Server(repository, tmp_path, f"--token-file={file}") as server:
        calls = Calls(api, server)
        over = threading.Event()

        def ask() -> int:
            count = 0
            while not over.is_set():
                calls.tokenize(bearer("a"))
                count += 1
            return count

        with ThreadPoolExecutor(4) as pool:
            askers = [pool.submit(ask) for _ in range(4)]
            for i in range(3):
                tokens.write(file, tokens.line("alice", "a"), tokens.line(f"other{i}", f"t{i}"))
                wait_until_taken(lambda i=i: calls.tokenize(bearer(f"t{i}")))
            over.set()
            assert sum(asker.result() for asker in askers) > 100

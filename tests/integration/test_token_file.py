"""What a token file says: who may call how much, from when on, and what is wrong with it."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import expect, tokens
from integration.access_calls import DENIED, EXHAUSTED, UNAUTHENTICATED, Calls, metrics, wait_until_taken
from integration.certificates import Authority, write_at_once
from integration.server_process import BINARY, Server, account_for_lines, run, wait_until
from integration.tls_calls import files_of
from integration.tokens import bearer

CLIENT = BINARY.with_name("longshort")


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
        with expect.error(UNAUTHENTICATED, "unknown to this server"):
            calls.tokenize(bearer("first"))
        assert calls.go_on(bearer("second"), "s").session_tokens == 9, "the identity and what it has stay"
        wait_until(lambda: server.log().count("the token file has changed and is in use") == 2)

        def failures() -> int:
            return int(
                float(re.search(r"^longshort_token_file_failures_total (\S+)", metrics(server), re.MULTILINE)[1])
            )

        assert failures() == 0
        tokens.write(file, tokens.line("alice", "fourth"), "mallory scopes=all\n")
        wait_until(lambda: failures() == 1)
        wait_until(lambda: "the new token file is invalid; the previous contents stay in use" in server.log())
        assert "line 2: scopes is" in server.log()
        calls.tokenize(bearer("second"))
        with expect.error(UNAUTHENTICATED):
            calls.tokenize(bearer("fourth"))


def test_refused_strangers_share_a_line_a_second(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    file = tokens.write(tmp_path / "tokens", tokens.line("alice", "a"))
    with Server(repository, tmp_path, f"--token-file={file}") as server:
        calls = Calls(api, server)

        def are_refused(count: int, token: str) -> None:
            for _ in range(count):
                with expect.error(UNAUTHENTICATED):
                    calls.tokenize(bearer(token))

        are_refused(100, "guess")
        for _ in range(5):
            with expect.error(grpc.StatusCode.NOT_FOUND):
                calls.tokenize(bearer("a"), model="other")
        account_for_lines(server.log, "code=UNAUTHENTICATED", 100, lambda: are_refused(1, "guess"))
        assert server.log().count("code=UNAUTHENTICATED") < 50
        assert server.log().count("code=NOT_FOUND") == 5, "an identity's calls have a line each"


def test_a_priority_above_normal_needs_a_field(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    urgent = tokens.line("alice", "urgent", "scopes=infer priority=high")
    file = tokens.write(tmp_path / "tokens", tokens.line("alice", "usual"), urgent)
    with Server(repository, tmp_path, f"--token-file={file}") as server:
        calls = Calls(api, server)
        for priority in ("low", "normal"):
            calls.tokenize([*bearer("usual"), ("x-priority", priority)])
        with expect.error(DENIED, "priority high", "alice", "priority=high"):
            calls.tokenize([*bearer("usual"), ("x-priority", "high")])
        calls.tokenize([*bearer("urgent"), ("x-priority", "high")])


def test_an_identity_makes_so_many_calls_a_second(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    rest = "scopes=infer calls-per-second=4"
    lines = [tokens.line("alice", "a1", rest), tokens.line("alice", "a2", rest), tokens.line("bob", "b")]
    lines.append(tokens.line("carol", "c", rest))
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
            error = pytest.raises(grpc.RpcError, lambda: [calls.tokenize(bearer("c")) for _ in range(100)]).value
            wait = tokens.retry_delay(error)
            assert 0 < wait <= 0.25
            time.sleep(wait)
            calls.tokenize(bearer("c"))


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
    file = tokens.write(
        tmp_path / "tokens",
        "web spiffe-id=spiffe://example.org/web scopes=infer,sessions\n",
        "ops certificate-subject=CN=ops scopes=infer,sessions\n",
        tokens.line("alice", "a1"),
    )
    options = (*files_of(tmp_path, servers.server()), f"--token-file={file}")
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
        for odd in (("spiffe://example.org/web", "https://example.org/"), ("spiffe://example.org",)):
            with expect.error(UNAUTHENTICATED, "asks for a token"):
                calls_of("ops", *odd).generate([])
        # On the connection of a certificate a token is its own identity's, call by call.
        assert ops.generate([*bearer("a1"), ("x-request-id", "by-alice")]).completions
        with expect.error(UNAUTHENTICATED, "unknown to this server"):
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
            "--priority=high",
            "--tokens-per-second=1e6",
            "--expires=30d",
        ),
    )
    file = tokens.write(tmp_path / "tokens", f"{first}\n{second}\n")
    with Server(repository, tmp_path, f"--token-file={file}") as server:
        calls = Calls(api, server)
        assert calls.generate(bearer(plain), session="s").completions
        assert calls.generate([*bearer(narrow), ("x-priority", "high")]).completions
        with expect.error(DENIED, "sessions"):
            calls.generate(bearer(narrow), session="s")


def test_certificates_that_no_client_can_show_are_reported(repository: Path, tmp_path: Path) -> None:
    file = tokens.write(tmp_path / "tokens", "web spiffe-id=spiffe://example.org/web scopes=infer")
    with Server(repository, tmp_path, f"--token-file={file}") as server:
        wait_until(lambda: "without --tls-client-ca clients present none" in server.log())


def test_a_token_file_that_is_wrong_is_refused_at_the_start(repository: Path, tmp_path: Path) -> None:
    file = tokens.write(tmp_path / "tokens", tokens.line("alice", "a", "scopes=everything"))
    for more in ([], ["--check-config"]):
        done = run(f"--model-repository={repository}", f"--token-file={file}", *more)
        assert done.returncode == 1
        assert f"--token-file={file}, line 1: scopes is" in done.stderr
    tokens.write(file, tokens.line("alice", "a")).chmod(0o604)
    done = run(f"--model-repository={repository}", f"--token-file={file}")
    assert done.returncode == 1 and "is accessible to all users of this machine" in done.stderr
    done = run(f"--model-repository={repository}", "--protect-health")
    assert done.returncode == 1 and "--protect-health needs --token-file" in done.stderr


def test_without_a_token_file_every_client_id_is_accepted(api: SimpleNamespace, server: Server) -> None:
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

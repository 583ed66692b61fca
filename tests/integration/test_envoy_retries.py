"""Which calls the real Envoy of deploy/envoy sends to another server. No client here tries again by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from longshort._proto import inference_pb2

from integration import deadly_request
from integration.envoy_process import Envoy
from integration.server_process import BINARY, Server
from integration.test_envoy import NO_RETRIES, Web, started

TOKENIZE = "/longshort.v1.Inference/Tokenize"
QUESTION = inference_pb2.TokenizeRequest(input={"text": "x"})
# Health is checked once: calls meet a server that Envoy takes for healthy.
ONE_CHECK = {"interval: 1s": "interval: 3600s"}


class MortalServer:
    """One that each request kills."""

    def __init__(self, requests: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, deadly_request.__file__, requests], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.grpc_port, self.http_port = map(int, self.process.stdout.readline().split())

    def __enter__(self) -> MortalServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def by_grpc(proxy: Envoy, session: str) -> str:
    with proxy.new_channel(NO_RETRIES) as channel:
        metadata = [("x-session-id", session)] if session else None
        tokenize = channel.unary_unary(TOKENIZE)
        return tokenize.future(QUESTION.SerializeToString(), metadata=metadata, timeout=30).code().name


def by_http(proxy: Envoy, session: str) -> str:
    fields = {"x_session_id": session} if session else {}
    status, _ = Web(proxy).ask("POST", TOKENIZE, {"input": {"text": "x"}}, **fields)
    return {200: "OK", 503: "UNAVAILABLE"}[status]


@pytest.mark.parametrize("session", ["", "talk"])
@pytest.mark.parametrize("call", [by_grpc, by_http])
def test_a_request_that_kills_its_server_is_sent_to_no_other(
    call: Callable[[Envoy, str], str], session: str, tmp_path: Path
) -> None:
    requests = tmp_path / "requests"
    with MortalServer(requests) as first, MortalServer(requests) as second:
        with started(tmp_path / "envoy", (first, second), changes=ONE_CHECK) as proxy:
            assert call(proxy, session) == "UNAVAILABLE"
        assert requests.read_text() == "request\n"
        assert sorted([first.process.poll() is None, second.process.poll() is None]) == [False, True]


@pytest.mark.parametrize(("call", "cluster"), [(by_grpc, "longshort"), (by_http, "longshort_http")])
def test_a_call_that_reaches_no_server_is_sent_to_another(
    call: Callable[[Envoy, str], str], cluster: str, repository: Path, tmp_path: Path
) -> None:
    with (
        Server(repository, tmp_path / "first") as staying,
        Server(repository, tmp_path / "second") as gone,
        started(tmp_path / "envoy", (staying, gone), changes=ONE_CHECK) as proxy,
    ):
        gone.process.kill()
        gone.process.wait()
        assert [call(proxy, "") for _ in range(4)] == ["OK"] * 4
        assert proxy.count(f"cluster.{cluster}.upstream_cx_connect_fail") > 0, "one of them went to the other first"


def tokens_of(server: Server) -> float:
    return server.metric("longshort_prompt_tokens_total")


def test_a_run_of_the_program_outlives_the_server_behind_envoy(repository: Path, tmp_path: Path) -> None:
    """Its stream is at one of two servers, which is killed between two answers."""
    with (
        Server(repository, tmp_path / "first") as first,
        Server(repository, tmp_path / "second") as second,
        started(tmp_path / "envoy", (first, second)) as proxy,
    ):
        (tmp_path / "ca.pem").write_bytes(proxy.authority.pem)
        command = [BINARY.with_name("longshort"), f"--server=127.0.0.1:{proxy.port}", f"--tls-ca={tmp_path}/ca.pem"]
        with subprocess.Popen(
            [*command, "score", "--lines", "--json", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as program:
            assert program.stdin is not None and program.stdout is not None and program.stderr is not None
            answers = []
            for text in ("one", "two", "three"):
                program.stdin.write(f"{text}\n")
                program.stdin.flush()
                answers.append(json.loads(program.stdout.readline())["name"])
                if text == "two":
                    scored = max((first, second), key=tokens_of)
                    scored.process.kill()
                    scored.process.wait()
            program.stdin.close()
            errors = program.stderr.read()
        assert (program.returncode, answers) == (0, ["-:1", "-:2", "-:3"]), errors

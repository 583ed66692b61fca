"""The load client against the real server: that it counts every call, not how fast anything is."""

from __future__ import annotations

import json
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from bench.load.kept_ends import KeptEnds

from integration.server_process import BINARY, Server, wait_until

CLIENT = BINARY.with_name("longshort-load")
# A run of so many requests ends with the last of them; its time is only to be more than a slow machine takes.
AS_LONG_AS_IT_TAKES = "--seconds=10m"
DISTRIBUTIONS = ("first_token_seconds", "inter_token_seconds", "send_delay_seconds")


def run(server: Server, folder: Path, *arguments: str) -> dict:
    """The JSON report of a run."""
    report = folder / "report.json"
    command = [CLIENT, f"--server=127.0.0.1:{server.grpc_port}", f"--json={report}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "milliseconds" in done.stdout
    return json.loads(report.read_text())


def test_every_call_is_counted_once(server: Server, tmp_path: Path) -> None:
    before = {rpc: server.metric("longshort_requests_total", rpc=rpc) for rpc in ("GenerateStream", "ScoreText")}
    report = run(
        server,
        tmp_path,
        "--workload=generate,prompt=20:40,tokens=8,rate=20,requests=40",
        "--workload=score,prompt=50,concurrency=2,requests=100",
        # The server knows no such model.
        "--workload=score,name=wrong,model=nowhere,rate=10,requests=20",
        "--warm-up=0s",
        AS_LONG_AS_IT_TAKES,
        "--slo-total=10m",
    )
    generate, score, wrong = report["workloads"]
    for workload, requests in zip(report["workloads"], (40, 100, 20), strict=True):
        ends = ("answered", "refused", "failed", "cut_off")
        assert workload["sent"] == sum(workload[end] for end in ends) == requests
        assert sum(code["count"] for code in workload["total_seconds"].values()) == workload["sent"]
        for name in DISTRIBUTIONS:
            assert {"count", "mean", "p50", "p90", "p99", "max", "curve"} <= workload[name].keys()
        assert len(workload["timeline"]["total_p99"]) == len(workload["timeline"]["answered"])
    assert generate["answered"] == generate["sent"] == generate["first_token_seconds"]["count"]
    assert generate["within_objective"] == generate["answered"]
    assert generate["tokens_per_second"] > 0
    assert score["answered"] == score["sent"]
    assert wrong["failed"] == wrong["sent"] and list(wrong["total_seconds"]) == ["NOT_FOUND"]
    for rpc, sent in (("GenerateStream", generate["sent"]), ("ScoreText", score["sent"] + wrong["sent"])):
        wait_until(lambda: server.metric("longshort_requests_total", rpc=rpc) == before[rpc] + sent)  # noqa: B023


@pytest.mark.parametrize("warm_up", ["0s", "1s"])
def test_a_run_of_which_every_request_fails_says_why_and_is_an_error(server: Server, warm_up: str) -> None:
    workload = "--workload=score,model=nowhere,requests=3"
    command = [CLIENT, f"--server=127.0.0.1:{server.grpc_port}", workload, f"--warm-up={warm_up}", "--seconds=2s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "every request failed: there is no model nowhere" in done.stderr
    if warm_up == "0s":
        assert "NOT_FOUND " in done.stdout and "first failure: there is no model nowhere" in done.stdout


class Silent(grpc.GenericRpcHandler):
    """Answers no call before it ends."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        def wait(_: bytes, context: grpc.ServicerContext) -> bytes:
            ended = threading.Event()
            context.add_callback(ended.set)
            ended.wait()
            return b""

        return grpc.unary_unary_rpc_method_handler(wait)


def test_a_server_that_answers_nothing_is_an_error() -> None:
    silent = grpc.server(ThreadPoolExecutor(8), [Silent()])
    port = silent.add_insecure_port("127.0.0.1:0")
    silent.start()
    workload = "--workload=score,model=tiny,prompt=8,concurrency=2"
    command = [CLIENT, f"--server=127.0.0.1:{port}", workload, "--warm-up=0s", "--seconds=1s", "--grace=0s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    silent.stop(0)
    assert done.returncode == 1 and "no request was answered" in done.stderr, done


def test_a_stream_that_began_in_the_warm_up_is_no_failure(server: Server, tmp_path: Path) -> None:
    (stream,) = run(
        server,
        tmp_path,
        "--workload=generate,prompt=8,tokens=65000,concurrency=1",
        "--warm-up=2s",
        "--seconds=1s",
        "--grace=0s",
    )["workloads"]
    assert stream["sent"] == stream["failed"] == 0
    assert stream["tokens_per_second"] > 0


def test_the_seed_decides_what_is_sent(server: Server, tmp_path: Path) -> None:
    def tokens_read(seed: int) -> float:
        before = server.metric("longshort_prompt_tokens_total")
        workload = "--workload=score,prompt=8:2000,rate=40,requests=10"
        (sent,) = run(server, tmp_path, workload, "--warm-up=0s", AS_LONG_AS_IT_TAKES, f"--seed={seed}")["workloads"]
        assert sent["answered"] == 10
        return server.metric("longshort_prompt_tokens_total") - before

    first = tokens_read(1)
    assert tokens_read(1) == first
    assert tokens_read(2) != first


def test_streams_that_outlast_the_run_are_cut_off(server: Server, tmp_path: Path) -> None:
    workload = "--workload=generate,tokens=60000,concurrency=2"
    for seconds in (1, 4, 16):  # until something came within the run
        (streams,) = run(server, tmp_path, workload, "--warm-up=0s", f"--seconds={seconds}s", "--grace=0s")["workloads"]
        if streams["inter_token_seconds"]["count"] > 0:
            break
    # A busy server may predict a longer wait than it allows of the second stream, and refuse it until the first runs.
    assert streams["sent"] - streams["refused"] == streams["cut_off"] == 2, streams
    # They are no answers, but what they brought counts.
    assert streams["answers_per_second"] == 0
    assert streams["tokens_per_second"] > 0
    assert streams["inter_token_seconds"]["count"] > 0


def test_the_server_reports_what_a_kept_prefix_costs(server: Server, tmp_path: Path) -> None:
    run(server, tmp_path, "--workload=score,prompt=200,requests=1,concurrency=1", "--warm-up=0s", AS_LONG_AS_IT_TAKES)
    ends = KeptEnds.from_metrics(server.metric)
    assert ends is not None
    assert ends.pages["window"] > 0 and ends.pages["segment"] > 0
    # Pages of all states and their sizes are the whole cache.
    assert ends.cache_bytes == server.metric("longshort_cache_bytes")
    assert 0 < ends.count * ends.bytes_of_one <= ends.cache_bytes


def test_what_is_wrong_is_said(server: Server) -> None:
    for arguments, message in (
        ([], "--workload"),
        (["--workload=dance"], "generate, score or classify"),
        (["--workload=score", "--seconds=0s"], "--seconds"),
        (["--workload=score", "--server=127.0.0.1:1"], "cannot connect"),
    ):
        done = subprocess.run([CLIENT, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert message in done.stderr

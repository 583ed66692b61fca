"""Servers that share the work, refuse, are lost, come back, and have another model."""

from __future__ import annotations

import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import longshort
import longshort.batch
import pytest
from integration import model_directory, tokens
from integration.server_process import Server, wait_until
from longshort._proto import models_pb2
from longshort.batch.output.verifying import entries_of

from clients.python.batch.corpus import documents, read_errors, read_rows, write_jsonl
from clients.python.conftest import address, stall

ROWS = 1500
SHARD_ROWS = 50


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_jsonl(tmp_path_factory.mktemp("corpus") / "a.jsonl", documents(ROWS))


@pytest.fixture(scope="module")
def wanted(corpus: Path, server: Server, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The result of an undisturbed run."""
    out = tmp_path_factory.mktemp("wanted")
    longshort.batch.score(str(corpus), str(out), server=address(server), shard_rows=SHARD_ROWS)
    return read_rows(out)


@contextmanager
def running(corpus: Path, out: Path, servers: list[str] | str, **options: Any) -> Iterator[Future[Any]]:
    """A run in another thread, which has written some shards, but not all."""
    with ThreadPoolExecutor(1) as thread:
        run = thread.submit(
            longshort.batch.score, str(corpus), str(out), server=servers, shard_rows=SHARD_ROWS, **options
        )
        wait_until(lambda: run.done() or len(list((out / "manifest").glob("shard-*"))) >= 2)
        assert not run.done(), run.result()
        yield run


def check(out: Path, wanted: list[dict[str, Any]]) -> None:
    found = read_rows(out)
    assert [(row["ordinal"], row["text_hash"]) for row in found] == [
        (row["ordinal"], row["text_hash"]) for row in wanted
    ]
    assert [row["log_likelihood"] for row in found] == pytest.approx(
        [row["log_likelihood"] for row in wanted], abs=1e-3
    )


def scored(server: Server) -> float:
    return server.metric("longshort_prompt_tokens_total")


def test_servers_share_the_work(corpus: Path, wanted: Any, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path / "0") as one, Server(repository, tmp_path / "1") as other:
        longshort.batch.score(
            str(corpus), str(tmp_path / "out"), server=[address(one), address(other)], shard_rows=SHARD_ROWS
        )
        check(tmp_path / "out", wanted)
        # Each at its own pace; neither was left out.
        assert min(scored(one), scored(other)) > 0.1 * (scored(one) + scored(other))


def test_what_a_lost_server_had_is_given_to_others_and_it_is_taken_again(
    corpus: Path, wanted: Any, repository: Path, tmp_path: Path
) -> None:
    with Server(repository, tmp_path / "0", "--threads=1") as one:
        with Server(repository, tmp_path / "1") as lost:
            port = lost.grpc_port
            with running(corpus, tmp_path / "out", [address(one), address(lost)]) as run:
                lost.process.kill()
                lost.wait()
                with Server(repository, tmp_path / "2", grpc_port=port) as again:
                    wait_until(lambda: run.done() or scored(again) > 0)
                    summary = run.result(60)
        assert (summary.rows, summary.errors) == (ROWS, 0)
        check(tmp_path / "out", wanted)


def test_a_restart_of_the_only_server_is_waited_out(
    corpus: Path, wanted: Any, repository: Path, tmp_path: Path
) -> None:
    with Server(repository, tmp_path / "0") as lost:
        port = lost.grpc_port
        with running(corpus, tmp_path / "out", address(lost)) as run:
            lost.process.kill()
            lost.wait()
            with Server(repository, tmp_path / "1", grpc_port=port):
                summary = run.result(60)
    assert (summary.rows, summary.errors) == (ROWS, 0)
    check(tmp_path / "out", wanted)


def test_a_server_that_stops_answering_is_left(corpus: Path, wanted: Any, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path / "0") as one, Server(repository, tmp_path / "1") as stalled:
        with running(corpus, tmp_path / "out", [address(one), address(stalled)], timeout=1.0) as run:
            stall(stalled)
            summary = run.result(60)
            stalled.process.send_signal(signal.SIGCONT)
        assert (summary.rows, summary.errors) == (ROWS, 0)
        check(tmp_path / "out", wanted)


def test_a_run_without_a_server_ends_when_its_patience_does_and_goes_on_later(
    corpus: Path, wanted: Any, repository: Path, tmp_path: Path
) -> None:
    with (
        Server(repository, tmp_path / "0") as lost,
        running(corpus, tmp_path / "out", address(lost), patience=1.0) as run,
    ):
        lost.process.kill()
        with pytest.raises(longshort.Unavailable, match="likely cause: cannot connect"):
            run.result(60)
    before = len(entries_of(str(tmp_path / "out")))
    assert 2 <= before < ROWS // SHARD_ROWS
    with Server(repository, tmp_path / "1") as again:
        summary = longshort.batch.score(
            str(corpus), str(tmp_path / "out"), server=address(again), shard_rows=SHARD_ROWS
        )
    assert summary.shards_before == before and summary.all_rows == ROWS
    check(tmp_path / "out", wanted)


@pytest.mark.parametrize("model", ["tiny/3", "absent"])
def test_a_model_or_version_that_is_not_there_is_not_found_at_the_start(
    corpus: Path, server: Server, tmp_path: Path, model: str
) -> None:
    """No other version takes its place. Ray and datatrove use a Pool."""
    servers = [address(server), f"localhost:{server.grpc_port}"]
    missing = "has no version 3" if "/" in model else "no model absent"
    with pytest.raises(longshort.NotFound, match=missing):
        longshort.batch.score(str(corpus), str(tmp_path / "out"), server=servers, model=model)
    assert not (tmp_path / "out/rows").exists()
    with pytest.raises(longshort.NotFound, match=missing):
        longshort.batch.Pool("score", server=servers, model=model)
    program = (sys.executable, "-m", "longshort.batch", "score", str(corpus), f"--out={tmp_path / 'program'}")
    ended = subprocess.run(
        (*program, f"--model={model}", f"--server={address(server)}"), capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert missing in ended.stderr


@pytest.mark.parametrize("version", [1, 2])
def test_another_model_in_mid_run_ends_it_and_what_was_written_stays(
    corpus: Path, wanted: Any, repository: Path, tmp_path: Path, version: int
) -> None:
    """The server loads other weights under the same name and version, or only another version."""
    changed = tmp_path / "changed"
    if version == 2:
        shutil.copytree(repository / "tiny/1", changed / "tiny/2")
    else:
        model_directory.write(changed, seed=2)
    out = tmp_path / "out"
    with Server(repository, tmp_path / "0") as first:
        port = first.grpc_port
        with running(corpus, out, address(first)) as run:
            first.process.kill()
            first.wait()
            with Server(changed, tmp_path / "1", grpc_port=port) as other:
                with pytest.raises(longshort.batch.ModelChanged) as caught:
                    run.result(60)
                assert f"the model of the server {address(other)} is not the model of the run" in str(caught.value)
                assert ("fingerprint" if version == 1 else "version 2 instead of 1") in str(caught.value)
                # The server does not resume the run either.
                with pytest.raises(longshort.batch.ModelChanged, match=r"model\.(fingerprint|version) was "):
                    longshort.batch.score(str(corpus), str(out), server=address(other), shard_rows=SHARD_ROWS)
    found = read_rows(out)
    assert 2 * SHARD_ROWS <= len(found) < ROWS
    by_row = {row["ordinal"]: row["log_likelihood"] for row in wanted}
    assert all(row["log_likelihood"] == pytest.approx(by_row[row["ordinal"]], abs=1e-3) for row in found)
    with Server(repository, tmp_path / "2") as again:
        longshort.batch.score(str(corpus), str(out), server=address(again), shard_rows=SHARD_ROWS)
    check(out, wanted)


def control(server: Server, verb: str, version: int = 1) -> None:
    """Calls LoadModel or UnloadModel for tiny."""
    kind = getattr(models_pb2, f"{verb}Request")
    call = server.channel.unary_unary(f"/longshort.v1.Models/{verb}", kind.SerializeToString)
    call(kind(model={"name": "tiny", "version": version}), timeout=20)


@pytest.mark.parametrize("how", ["unloaded", "a newer version"])
def test_a_model_that_goes_in_mid_run_answers_to_its_end(
    corpus: Path, wanted: Any, repository: Path, tmp_path: Path, how: str
) -> None:
    """A stream keeps its first model."""
    served = tmp_path / "repository"
    shutil.copytree(repository, served)
    with (
        Server(served, tmp_path / "0", "--model-control", "--watch-repository=100ms") as server,
        running(corpus, tmp_path / "out", address(server)) as run,
    ):
        if how == "unloaded":
            control(server, "UnloadModel")
        else:
            shutil.copytree(repository / "tiny/1", served / ".incoming")
            (served / ".incoming").rename(served / "tiny/2")
        summary = run.result(60)
        assert (summary.rows, summary.errors) == (ROWS, 0)
    check(tmp_path / "out", wanted)


def test_a_document_in_pieces_waits_for_a_model_that_was_unloaded(
    server: Server, repository: Path, tmp_path: Path
) -> None:
    corpus = write_jsonl(tmp_path / "a.jsonl", [{"text": "four " * 40_000}] * 2)
    with longshort.Client(address(server)) as client:
        (wanted,) = client.score(["four " * 40_000])
    options = ("--model-control", "--max-message-bytes=20000")
    with Server(repository, tmp_path / "0", *options) as narrow, ThreadPoolExecutor(1) as thread:
        run = thread.submit(longshort.batch.score, str(corpus), str(tmp_path / "out"), server=address(narrow))
        wait_until(lambda: scored(narrow) > 0)
        control(narrow, "UnloadModel")
        wait_until(lambda: narrow.log().count("code=NOT_FOUND") >= 7 or run.done())
        control(narrow, "LoadModel")
        summary = run.result(60)
    assert (summary.rows, summary.errors) == (2, 0), read_errors(tmp_path / "out")
    for row in read_rows(tmp_path / "out"):
        assert row["log_likelihood"] == pytest.approx(wanted.log_likelihood, rel=1e-6)


def test_documents_in_pieces_wait_for_a_server_that_stops_and_comes_back(
    server: Server, repository: Path, tmp_path: Path
) -> None:
    text = "four " * 40_000
    corpus = write_jsonl(tmp_path / "a.jsonl", [{"text": text}] * 8)
    with longshort.Client(address(server)) as client:
        (wanted,) = client.score([text])
    with Server(repository, tmp_path / "0", "--max-message-bytes=20000") as narrow, ThreadPoolExecutor(1) as thread:
        port = narrow.grpc_port
        run = thread.submit(longshort.batch.score, str(corpus), str(tmp_path / "out"), server=address(narrow))
        wait_until(lambda: scored(narrow) > 0)
        narrow.process.terminate()
        narrow.wait()
        with Server(repository, tmp_path / "1", "--max-message-bytes=20000", grpc_port=port):
            summary = run.result(60)
    assert (summary.rows, summary.errors) == (8, 0), read_errors(tmp_path / "out")
    for row in read_rows(tmp_path / "out"):
        assert row["log_likelihood"] == pytest.approx(wanted.log_likelihood, rel=1e-6)


def test_servers_with_different_models_are_not_mixed(corpus: Path, server: Server, tmp_path: Path) -> None:
    model_directory.write(tmp_path / "changed", seed=2)
    with Server(tmp_path / "changed", tmp_path / "1") as other, pytest.raises(longshort.batch.ModelChanged):
        longshort.batch.score(
            str(corpus), str(tmp_path / "out"), server=[address(server), address(other)], shard_rows=SHARD_ROWS
        )


def test_a_server_of_one_place_is_enough_and_others_get_their_turn(
    corpus: Path, wanted: Any, repository: Path, tmp_path: Path
) -> None:
    """One sequence runs and sixteen may wait. The run does not fill the queue, so other calls are answered."""
    with Server(repository, tmp_path / "0", "--max-streams=1", "--max-queued-requests=16") as small:
        with running(corpus, tmp_path / "out", address(small)) as run, longshort.Client(address(small)) as client:
            answered = 0
            while not run.done():
                client.score("an urgent question", priority="high", timeout=60.0)
                answered += 1
            summary = run.result(60)
        assert (summary.rows, summary.errors) == (ROWS, 0) and answered > 5
    check(tmp_path / "out", wanted)


def test_the_window_gives_way_to_other_users(repository: Path, tmp_path: Path) -> None:
    """The run uses all four places until others want them. Then fewer of its documents wait at the server."""
    with Server(repository, tmp_path / "0", "--max-streams=4") as server:
        stop = threading.Event()
        with longshort.batch.Pool("score", server=address(server)) as pool, ThreadPoolExecutor(20) as threads:
            scorer: Any = pool._scorer
            batch = threads.submit(lambda: [pool.results(["some text " * 40] * 400) for _ in iter(stop.is_set, True)])
            wait_until(lambda: scored(server) > 100_000)
            assert scorer.window >= 4
            client = longshort.Client(address(server), retry=longshort.RetryPolicy(attempts=50))

            def talk() -> None:
                while not stop.is_set():
                    client.generate("x", max_tokens=300, priority="high").finish()

            talks = [threads.submit(talk) for _ in range(12)]
            try:
                wait_until(lambda: scorer.window <= 2)
            finally:
                stop.set()
            assert all(len(found) == 400 for found in batch.result(60))
            for one in talks:
                one.result(60)
            client.close()


def test_a_limit_of_tokens_a_second_is_kept_to(repository: Path, tmp_path: Path) -> None:
    file = tokens.write(
        tmp_path / "tokens", tokens.line("night", "secret", "scopes=infer,observe tokens-per-second=20000")
    )
    (tmp_path / "secret").write_text("secret")
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": "x" * 500} for _ in range(120)])
    with Server(repository, tmp_path / "0", f"--token-file={file}") as server:
        summary = longshort.batch.score(
            str(path), str(tmp_path / "out"), server=address(server), token_file=str(tmp_path / "secret")
        )
        assert (summary.rows, summary.errors) == (120, 0)
        with pytest.raises(longshort.Unauthenticated):
            longshort.batch.score(str(path), str(tmp_path / "other"), server=address(server))


class Severing(socketserver.BaseRequestHandler):
    """Forwards bytes in both directions until one side has sent POISON, then closes both connections."""

    def handle(self) -> None:
        upstream = socket.create_connection(self.server.target)  # type: ignore[attr-defined]

        def pump(source: socket.socket, sink: socket.socket) -> None:
            tail = b""
            with suppress(OSError):
                while data := source.recv(65536):
                    if b"POISON" in tail + data:
                        break
                    tail = data[-8:]
                    sink.sendall(data)
            for one in (source, sink):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

        back = threading.Thread(target=pump, args=(upstream, self.request))
        back.start()
        pump(self.request, upstream)
        back.join()
        upstream.close()


@contextmanager
def severing_proxy(server: Server) -> Iterator[str]:
    class Proxy(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        target = ("127.0.0.1", server.grpc_port)

    with Proxy(("127.0.0.1", 0), Severing) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        yield f"127.0.0.1:{proxy.server_address[1]}"
        proxy.shutdown()
        thread.join()


def test_a_document_that_breaks_every_connection_is_the_only_error(server: Server, tmp_path: Path) -> None:
    rows = [{"text": f"document {i}" if i != 30 else "a POISON b"} for i in range(60)]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    with severing_proxy(server) as proxy:
        summary = longshort.batch.score(str(path), str(tmp_path / "out"), server=proxy)
    assert (summary.rows, summary.errors) == (59, 1)
    (error,) = read_errors(tmp_path / "out")
    assert (error["ordinal"], error["code"]) == (30, "UNAVAILABLE")
    assert error["message"].startswith("6 times in a row: ")


def test_a_pool_answers_lists_of_documents(classifiers: Server, server: Server) -> None:
    with longshort.batch.Pool("score", server=address(server), region_tokens=4) as pool:
        first, broken, last = pool.results(["abcdefgh", "", b"\xff\xfe"])
        assert isinstance(first, dict) and isinstance(last, dict) and isinstance(broken, longshort.batch.RowError)
        assert sum(first["region_bits"]) == pytest.approx(-first["log_likelihood"] / 0.6931471805599453, rel=1e-5)
        assert pool.model.name == "tiny" and pool.results([]) == []
    with longshort.batch.Pool("classify", server=address(classifiers), model="one", top_k=2) as pool:
        (found,) = pool.results(["some text"])
        assert isinstance(found, dict) and len(found["classes"]) == 2 and found["label"] == found["classes"][0]["label"]
    with pytest.raises(longshort.batch.Refused, match="one is a classifier: use classify"):
        longshort.batch.Pool("score", server=address(classifiers), model="one")


def test_a_long_document_has_its_regions_and_the_score_of_one_call(
    repository: Path, server: Server, tmp_path: Path
) -> None:
    """No answer names 150,000 tokens, and a message has at most 100,000 bytes, so the document is sent in pieces."""
    letters = "".join(chr(97 + i * i * 7 % 23) for i in range(149_000)) + "\u00e9" * 500
    texts = [letters, letters.encode() + b"\xff", [4 + i % 250 for i in range(150_000)], "short"]
    with longshort.Client(address(server)) as client:
        wanted = client.score(texts)
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": text} for text in (texts[0], texts[2], texts[3])])
    (tmp_path / "b.txt").write_bytes(texts[1])  # type: ignore[arg-type]
    with Server(repository, tmp_path / "0", "--max-message-bytes=100000") as narrow:
        for region_tokens in (0, 1000):
            out = tmp_path / f"out{region_tokens}"
            summary = longshort.batch.score(
                [str(path), str(tmp_path / "b.txt")], str(out), server=address(narrow), region_tokens=region_tokens
            )
            assert (summary.rows, summary.errors) == (4, 0), read_errors(out)
            for row, score in zip(read_rows(out), [wanted[place] for place in (0, 2, 3, 1)], strict=True):
                assert row["log_likelihood"] == pytest.approx(score.log_likelihood, rel=1e-6)
                assert row["token_count"] == score.token_count
                assert row["scored_token_count"] == score.scored_token_count == score.token_count - 1
                assert row["bits_per_byte"] == pytest.approx(score.bits_per_byte, rel=1e-6)
                if region_tokens:
                    assert len(row["region_bits"]) == -(-score.token_count // 1000)
                    assert sum(row["region_bits"]) == pytest.approx(-score.log_likelihood / 0.69314718056, rel=1e-5)
        # No session is left behind.
        assert narrow.metric("longshort_sessions") == 0

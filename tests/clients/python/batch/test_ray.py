"""longshort.ray on a real Ray of this machine: the same rows and scores as a run of longshort-batch."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import longshort.batch
import longshort.ray
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray.data
from docs.blocks import block_of
from integration.server_process import BINARY, Server, wait_until
from ray.data.checkpoint import CheckpointConfig

from clients.python.batch.corpus import documents, read_rows
from clients.python.conftest import address

pytestmark = pytest.mark.slow

ROWS = 1200


# On a busy machine, Ray may not start: its first process stays silent for minutes, or a node registers after 30 s.
STARTS = 5


def start_ray(folder: str) -> None:
    """Starts a Ray of two processors on the loopback interface."""
    os.environ.update({"RAY_gcs_server_port_wait_time_s": "60", "RAY_USAGE_STATS_ENABLED": "0"})
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100 << 20,
        _temp_dir=folder,
        _node_ip_address="127.0.0.1",
        logging_level="ERROR",
        log_to_driver=False,
    )


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    # Its sockets' paths have room for 107 bytes.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        for start in range(STARTS):
            try:
                start_ray(f"{folder}/{start}")
                break
            except Exception:  # Ray raises no narrower type
                if start == STARTS - 1:
                    raise
                ray.shutdown()
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        # So there are some ten blocks to share out.
        context.target_min_block_size, context.target_max_block_size = 1, 20 << 10
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six files of 200 rows, each with its id."""
    folder = tmp_path_factory.mktemp("corpus")
    texts = [one["text"] for one in documents(ROWS)]
    for begin in range(0, ROWS, 200):
        table = pa.table({"id": [*range(begin, begin + 200)], "text": texts[begin : begin + 200]})
        pq.write_table(table, folder / f"{begin:04d}.parquet")
    return folder


@pytest.fixture(scope="module")
def wanted(corpus: Path, server: Server, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The output of longshort-batch on one machine."""
    out = tmp_path_factory.mktemp("wanted")
    longshort.batch.score(str(corpus), str(out), server=address(server), region_tokens=64)
    return read_rows(out)


def check(rows: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    """Checks that each row occurs once, with its figures."""
    rows = sorted(rows, key=lambda row: row["id"])
    assert [(row["id"], row["text_hash"]) for row in rows] == [(row["id"], row["text_hash"]) for row in wanted]
    for column in ("log_likelihood", "bits_per_byte", "token_count", "scored_token_count"):
        assert [row[column] for row in rows] == pytest.approx([row[column] for row in wanted], abs=1e-3)
    assert not any(row["error"] for row in rows)
    assert len({row["fingerprint"] for row in rows}) == 1


def killing(lost: Server) -> Callable[[pa.Table], pa.Table]:
    """A step after the scoring that kills the server at the first scored batch."""
    process = lost.process.pid

    def kill(batch: pa.Table) -> pa.Table:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        return batch

    return kill


def test_rows_and_scores_are_those_of_one_machine_though_a_server_is_killed(
    corpus: Path, wanted: list[dict[str, Any]], repository: Path, tmp_path: Path
) -> None:
    with Server(repository, tmp_path / "0") as one, Server(repository, tmp_path / "1") as lost:
        scored = longshort.ray.score(
            ray.data.read_parquet(str(corpus)),
            server=[address(one), address(lost)],
            region_tokens=64,
            batch_size=50,
            num_cpus=0.25,
        )
        rows = scored.map_batches(killing(lost), batch_format="pyarrow", num_cpus=0.25).take_all()
        assert lost.wait() == -signal.SIGKILL
        # Each had its part: what the killed one had counted is gone with it.
        assert 0 < one.metric("longshort_prompt_tokens_total") < sum(row["token_count"] for row in rows)
    check(rows, wanted)
    assert [row["region_bits"] for row in sorted(rows, key=lambda row: row["id"])[:9]] == [
        pytest.approx(row["region_bits"], abs=1e-3) for row in wanted[:9]
    ]


def test_each_actor_starts_a_server_of_its_own_and_both_come_back_when_it_ends(
    corpus: Path, wanted: list[dict[str, Any]], repository: Path, tmp_path: Path
) -> None:
    # Each start of the program leaves the server's process id.
    program = tmp_path / "server"
    program.write_text(f'#!/bin/sh\necho $$ >> {tmp_path}/started\nexec {BINARY} "$@"\n')
    program.chmod(0o755)
    started = tmp_path / "started"

    def kill_first(batch: pa.Table) -> pa.Table:
        first = int(started.read_text().split()[0])
        killed = tmp_path / "killed"
        if not killed.exists():
            killed.touch()
            os.kill(first, signal.SIGKILL)
        return batch

    scored = longshort.ray.score(
        ray.data.read_parquet(str(corpus)),
        start=longshort.ray.StartServer(str(repository), program=str(program)),
        concurrency=2,
        num_cpus=0.25,
        batch_size=50,
        patience=30.0,
    )
    check(scored.map_batches(kill_first, batch_format="pyarrow", num_cpus=0.25).take_all(), wanted)
    processes = [int(line) for line in started.read_text().split()]
    assert len(processes) == 3, "two, and one more in place of the first"
    wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))


def test_a_server_ends_with_an_actor_that_is_killed(repository: Path, tmp_path: Path) -> None:
    """An actor's program in another process: Ray ends the children of its own processes, except after such an end."""
    program = f"""
import os, signal
from longshort.ray.own_server import OwnServer, StartServer
server = OwnServer(StartServer({str(repository)!r}, program={str(BINARY)!r}), 1)
print(server._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    process = Path(f"/proc/{int(done.stdout)}")
    wait_until(lambda: not process.exists() or (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_server_that_does_not_start_fails_the_dataset_with_its_words(tmp_path: Path) -> None:
    scored = longshort.ray.score(
        ray.data.from_items([{"text": "a"}]),
        start=longshort.ray.StartServer(str(tmp_path / "nowhere"), program=str(BINARY)),
        concurrency=1,
        num_cpus=0.25,
    )
    with pytest.raises(Exception, match="exited with 1: .*nowhere', which is not a directory"):
        scored.take_all()


@pytest.mark.parametrize(("model", "message"), [("tiny/3", "has no version 3"), ("absent", "no model absent")])
def test_a_model_or_version_that_is_not_there_fails_the_dataset_at_its_start(
    server: Server, model: str, message: str
) -> None:
    """An actor does not start, so no row is read, and no other version takes its place."""
    read = server.metric("longshort_prompt_tokens_total")
    scored = longshort.ray.score(
        ray.data.from_items([{"text": "a"}]), server=address(server), model=model, concurrency=1, num_cpus=0.25
    )
    with pytest.raises(Exception, match=message):
        scored.take_all()
    assert server.metric("longshort_prompt_tokens_total") == read


def test_what_was_written_before_a_failure_is_not_done_again_with_rays_checkpoints(
    corpus: Path, wanted: list[dict[str, Any]], server: Server, repository: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def fail(batch: pa.Table) -> pa.Table:
        """Fails once something is written."""
        if out.exists() and any(out.glob("*.parquet")):
            raise RuntimeError("power cut")
        return batch

    def scored(server: Server) -> ray.data.Dataset:
        read = ray.data.read_parquet(str(corpus))
        # Ray's filter of rows that are done holds one processor, and reading the other.
        return longshort.ray.score(read, server=address(server), batch_size=50, concurrency=1, num_cpus=0)

    context = ray.data.DataContext.get_current()
    context.checkpoint_config = CheckpointConfig(
        id_column="id", checkpoint_path=str(tmp_path / "checkpoint"), delete_checkpoint_on_success=False
    )
    try:
        with pytest.raises(Exception, match="power cut"):
            scored(server).map_batches(fail, batch_format="pyarrow").write_parquet(str(out))
        done = sum(pq.read_metadata(path).num_rows for path in out.glob("*.parquet"))
        assert 0 < done < ROWS
        written = {row["id"] for path in out.glob("*.parquet") for row in pq.read_table(path).to_pylist()}
        with Server(repository, tmp_path / "another") as another:
            scored(another).write_parquet(str(out))
            read = another.metric("longshort_prompt_tokens_total")
    finally:
        context.checkpoint_config = None
    check([row for path in out.glob("*.parquet") for row in pq.read_table(path).to_pylist()], wanted)
    assert read == sum(row["token_count"] for row in wanted if row["id"] not in written)


def test_rows_that_cannot_be_scored_say_why(server: Server) -> None:
    rows = [{"id": 0, "text": "well"}, {"id": 1, "text": None}, {"id": 2, "text": ""}]
    scored = longshort.ray.score(ray.data.from_items(rows), server=address(server), concurrency=1, num_cpus=0.25)
    good, none, empty = sorted(scored.take_all(), key=lambda row: row["id"])
    assert good["error"] is None and good["bits_per_byte"] > 0
    assert none["error"] == 'INVALID_ARGUMENT: there is no "text"' and none["log_likelihood"] is None
    assert empty["error"].startswith("INVALID_ARGUMENT: ") and empty["text_hash"]


def test_a_text_that_is_not_utf8_fails_its_row_alone(server: Server) -> None:
    texts = pa.array([b"a b", b"c \xff d", b"e"]).view(pa.string())
    dataset = ray.data.from_arrow(pa.table({"id": [0, 1, 2], "text": texts}))
    scored = longshort.ray.score(dataset, server=address(server), concurrency=1).drop_columns(["text"])
    rows = sorted(scored.take_all(), key=lambda row: row["id"])
    wrong = 'INVALID_ARGUMENT: "text" is not UTF-8: byte 2 is 0xff'
    assert [row["error"] for row in rows] == [None, wrong, None]
    assert [row["token_count"] for row in rows] == [3, None, 1]


def test_classes_are_those_of_longshort_batch(classifiers: Server, tmp_path: Path) -> None:
    rows = [{"id": i, "text": f"text {i} " * (1 + i), "other": f"another {i}"} for i in range(20)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for model, second in (("one", ""), ("two", "other"), ("joins", ""), ("joins", "other")):
        options: dict[str, Any] = {"server": address(classifiers), "model": model, "truncate": True, "top_k": 2}
        longshort.batch.classify(
            str(tmp_path / "a.parquet"), str(tmp_path / (model + second)), second=second, **options
        )
        dataset = ray.data.from_items(rows)
        found = longshort.ray.classify(dataset, second=second, concurrency=1, num_cpus=0.25, **options).take_all()
        wanted = read_rows(tmp_path / f"{model}{second}")
        for row, other in zip(sorted(found, key=lambda row: row["id"]), wanted, strict=True):
            assert row["text_hash"] == other["text_hash"]
            assert (row["label"], row["truncated"]) == (other["label"], other["truncated"])
            assert [one["probability"] for one in row["classes"]] == pytest.approx(
                [one["probability"] for one in other["classes"]], abs=1e-4
            )


def test_wrong_options_and_columns_are_named(server: Server) -> None:
    dataset = ray.data.from_items([{"text": "a", "error": "mine"}])
    start = longshort.ray.StartServer("models")
    with pytest.raises(ValueError, match="server and start"):
        longshort.ray.score(dataset, server="a:1", start=start)
    with pytest.raises(TypeError, match="'batchsize'; valid are: .*batch_size"):
        longshort.ray.score(dataset, batchsize=5)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="region_tokens is -1"):
        longshort.ray.score(dataset, region_tokens=-1)
    scored = longshort.ray.score(dataset, server=address(server), concurrency=1, num_cpus=0.25)
    with pytest.raises(Exception, match='a column "error", which is a result column'):
        scored.take_all()


def test_the_program_of_the_page_runs(server: Server, tmp_path: Path) -> None:
    program = block_of("docs/batch_pipelines.md", "import longshort.ray").code
    (tmp_path / "corpus").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "text": ["one", "two"]}), tmp_path / "corpus/a.parquet")
    for there, here in (("127.0.0.1:8500", address(server)), ("enwiki", "tiny"), ("/shared", str(tmp_path))):
        program = program.replace(there, here)
    exec(program, {})
    table = pq.read_table(tmp_path / "scored")
    assert table.column("id").to_pylist() == [1, 2] and "text" not in table.column_names

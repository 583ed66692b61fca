"""A crowd of clients that ask, sort, cancel, stall, go away, hurry, talk and move their talks elsewhere, all at once,
while models fail and new versions take their place. A complete answer is the one of a server without other clients.
Every call ends as its client has reason to expect. Nothing is left when all have gone.
"""

from __future__ import annotations

import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

from integration import classifier_directory, model_directory
from integration.crowd import ACTS, PATIENCE, Member, Oracle
from integration.server_process import BINARY, Server, wait_until

MEMBERS = 12
ACTS_OF_EACH = 15
BUSY = [
    ("longshort_streams_active", {}),
    ("longshort_queued_requests", {}),
    ("longshort_queued_items", {}),
    ("longshort_cache_bytes", {"state": "used"}),
]
FAULTS = "throw=61,fail=37,stall=197,stall-ms=30,no-replica=9"


def add_versions(repository: Path, server: Server) -> None:
    """Copies of version 1, one after the other: talks go on with the next."""
    for version in range(2, 6):
        copy = repository / ".incoming"
        shutil.copytree(repository / "tiny/1", copy)
        copy.rename(repository / "tiny" / str(version))
        wait_until(
            lambda version=version: server.metric("longshort_model_load_duration_seconds", version=str(version)) > 0
        )


def test_a_crowd(api: SimpleNamespace, server: Server, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    model_directory.write(repository)
    texts = classifier_directory.write_text(repository, "texts", documents=1)
    images = classifier_directory.write_images(repository, "images")
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    # Their caches hold less than the crowd has to say, and their queues less than it asks at once.
    arguments = [
        "--devices=cpu:2",
        "--threads=1",
        "--max-streams=8",
        "--max-queued-requests=6",
        "--cache-bytes=3000000",
        "--trust-client-id",
    ]
    arguments += ["--watch-repository=100ms", f"--slow-reader-timeout={PATIENCE}s", f"--session-key-file={key}"]
    with (
        Server(repository, tmp_path / "sound", *arguments) as sound,
        Server(
            repository,
            tmp_path / "faulty",
            *arguments,
            program=BINARY.with_name("longshort-server-with-faults"),
            environment={"LONGSHORT_FAULTS": FAULTS},
        ) as faulty,
        ThreadPoolExecutor(MEMBERS + 1) as threads,
    ):
        oracle = Oracle(api, server, texts, images)
        members = [Member(api, [sound, faulty], oracle, number) for number in range(MEMBERS)]

        def live(member: Member) -> None:
            for _ in range(ACTS_OF_EACH):
                member.act()

        lives = [threads.submit(live, member) for member in members]
        reload = threads.submit(add_versions, repository, sound)
        for life in [*lives, reload]:
            life.result()

        done = sum((member.done for member in members), Counter[str]())
        assert all(done[act.__name__] > 0 for act in ACTS), done
        for place in (sound, faulty):
            for name, labels in BUSY:
                wait_until(lambda place=place, name=name, labels=labels: place.metric(name, **labels) == 0)
            for code in ("INTERNAL", "UNKNOWN", "UNAVAILABLE", "DATA_LOSS"):
                assert place.metric("longshort_requests_total", code=code) == 0, code
        assert faulty.metric("longshort_worker_rebuilds_total") > 0
        for place in (sound, faulty):
            place.terminate()
            assert place.wait() == 0
            assert "drained calls_cut_off=0" in place.log()

"""Attacks on a server of 1 GiB (LONGSHORT_HOSTILE_MIB), and heavy use: another client is served all along.

Each program of this folder can also be run by hand against any server of this machine, with all its clients or some:

  PYTHONPATH=tests .venv/bin/python -m hostile.bomb_http --grpc=127.0.0.1:8500 --http=127.0.0.1:8501 --only="OIP zeros"

and hostile.victim beside it.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from integration import session_calls, tokens
from integration.certificates import Authority
from integration.server_process import BINARY, ROOT, Server
from integration.tls_calls import files_of

from hostile.limited_memory import memory_group
from hostile.victim import LARGE, PATIENCE

pytestmark = pytest.mark.slow
MEMORY_BYTES = int(os.environ.get("LONGSHORT_HOSTILE_MIB", "1024")) << 20
SECONDS = float(os.environ.get("LONGSHORT_HOSTILE_SECONDS", "6"))
# What an attack may do to others, and may leave.
# A machine that does something else as well needs some slack.
SLACK = float(os.environ.get("LONGSHORT_HOSTILE_SLACK", "1"))
SLOWER, MILLISECONDS, LIVEZ_MILLISECONDS = 3 * SLACK, 100 * SLACK, 20 * SLACK
RECOVERY_SECONDS, LEFT_BYTES = 10, 100 << 20
LONGEST = 8  # times as long an attack may last until it has had its answers
MIB = 1 << 20


@dataclass
class Attack:
    program: str
    only: tuple[str, ...] = ()  # of its clients; all of them if empty
    # "peer": the server has no token file and knows clients by their address. "client": the attacker has a token.
    # "stranger": the attacker has none, and others have.
    attacker: str = "client"
    tls: bool = False
    options: tuple[str, ...] = ()
    most_queued: int = 0  # requests that one client may have in the queue; 0: not checked
    bodies: bool = False  # bodies of 200 KB of others are served, too
    moves_sessions: bool = False
    served: tuple[str, ...] = ()  # that the program has seen
    least_seconds: float = 0  # how long it lasts at least


# Images of 25 megapixels take 300 MB each.
LARGE_IMAGES = ("--preparation-threads=1", "--max-image-pixels=25000000")
WHOLE_ANSWERS = (
    *("tokens", "tokens by zstd", "tokens, read slowly"),
    *("log-probabilities", "embeddings, many on a connection"),
)
ATTACKS = {
    "unread tokens by gRPC": Attack("unread_grpc", ("tokens", "more connections"), "peer"),
    "other unread answers by gRPC": Attack(
        "unread_grpc",
        ("tokens, read slowly", "log-probabilities", "embeddings", "OIP", "OIP streams", "streams of documents")
        + ("streams that echo",),
    ),
    "small unread answers by gRPC": Attack("unread_grpc", ("small answers", "probes", "OIP streams of errors"), "peer"),
    "long documents": Attack("unread_grpc", ("long documents",), "peer"),
    "unread answers by HTTP": Attack("unread_http", WHOLE_ANSWERS),
    "unread streams and pages by HTTP": Attack("unread_http", ("streams that echo", "metrics", "openapi")),
    "unread answers by TLS": Attack("unread_http", WHOLE_ANSWERS, tls=True, attacker="peer"),
    "zeros by HTTP": Attack("bomb_http", ("OIP zeros",)),
    "bombs by HTTP": Attack("bomb_http", attacker="peer"),
    "gzip by gRPC": Attack("bomb_grpc", ("gzip",)),
    "bombs by gRPC": Attack("bomb_grpc", attacker="peer"),
    "empty strings": Attack("json_memory", ("prompts", "inputs"), "peer"),
    "memory of JSON": Attack("json_memory"),
    "chunk heads": Attack("connections", ("chunk heads",), "stranger"),
    "chunk heads by TLS": Attack("connections", ("chunk heads",), "stranger", tls=True),
    "bodies of 64 KB": Attack("connections", ("bodies of 64 KB", "kept open"), "peer"),
    "unfinished connections": Attack(
        "connections", ("unfinished heads", "idle gRPC", "unfinished handshakes"), "stranger", tls=True
    ),
    "bursts": Attack("connections", ("bursts",), "stranger"),
    "asterisks": Attack("connections", ("asterisks",), "stranger", served=("status 400",)),
    "long hellos": Attack("connections", ("long hellos",), "stranger", tls=True, served=("long hellos refused",)),
    "bodies without end": Attack("hog_bodies", ("bodies",), "stranger", bodies=True),
    "messages without end": Attack("hog_bodies", ("messages",), "peer"),
    "GETs of other sites": Attack("cross_site_get", (), "peer"),
    "many names": Attack("many_ids", (), "peer", most_queued=1024),
    "busy thread of HTTP": Attack(
        "io_thread", ("metrics", "tokenize", "fields", "long paths", "pipelined", "after the end", "openapi"), "peer"
    ),
    "many connections of HTTP": Attack("io_thread", ("pipelined in turns",), "peer"),
    "clients that leave": Attack("leavers", attacker="peer"),
    "slow streams": Attack("slow_streams", attacker="peer"),
    "images": Attack("image_bombs"),
    "header fields": Attack("metadata", ("header fields", "beyond the limit", "connections")),
    "calls without message": Attack("metadata", ("calls without message",), "stranger"),
    "refused calls": Attack("metadata", ("refused calls",), "peer"),
    "small calls": Attack("metadata", ("small calls",), "peer"),
    # Before the guard can close the first connections, they delay other clients' calls for a second.
    "headers without end": Attack("metadata", ("headers without end",), "stranger", least_seconds=12),
    "new keys": Attack("new_keys", (), "stranger", tls=True, served=("closed for its keys",)),
    "sessions that move": Attack("sessions", moves_sessions=True, served=("sessions", "imports")),
    "heavy use": Attack("heavy_use", options=LARGE_IMAGES, served=("bodies 200", "texts 200", "photos 200")),
}


Measured = dict[str, dict[str, Any]]  # by kind of call


class Outcome(NamedTuple):
    report: str
    seen: dict[str, float]  # by the program of the attack
    others: Measured
    queued: float


@dataclass
class Attacked:
    """A server, and the arguments of programs that call it as the attacker and as another client."""

    server: Server
    with_tokens: bool
    attacker: list[str]
    victim: list[str]

    def start(self, program: str, who: list[str], seconds: float, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"hostile.{program}", *who, f"--seconds={seconds}", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    def measure(self, seconds: float) -> Measured:
        return json.loads(self.start("victim", self.victim, seconds).communicate()[0])

    def calm(self) -> Measured:
        """What calls take without an attack; measured again while other programs keep the machine busy."""
        for _ in range(5):
            found = self.measure(max(1, 3 / SLACK))
            if found["/livez"]["p99"] <= LIVEZ_MILLISECONDS:
                break
        return found

    def memory(self) -> int:
        """What the server has now; 0 if it has ended."""
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) << 10 if found else 0

    def left(self, before: int) -> str:
        """What the attack has left in the server; empty if nothing that counts."""
        if (memory := self.memory()) - before > LEFT_BYTES:
            return f"{memory // MIB} MiB"
        streams = 0 if self.with_tokens else self.server.metric("longshort_streams_active")
        return f"{streams:.0f} streams" if streams else ""

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def suffer(self, attack: Attack, seconds: float) -> Outcome:
        used, begin = self.processor_seconds(), time.monotonic()
        program = self.start(attack.program, self.attacker, seconds, *(f"--only={one}" for one in attack.only))
        victim = self.start("victim", self.victim, seconds)
        peak, queued = 0, 0.0
        while program.poll() is None and lives(self.server):
            peak = max(peak, self.memory())
            if attack.most_queued:
                queued = max(queued, self.server.metric("longshort_queued_requests"))
            time.sleep(0.05)
        if not lives(self.server):
            program.kill()
            victim.kill()
        seen, found = program.communicate()[0].strip(), victim.communicate()[0]
        assert not program.returncode, f"the attack's program has failed: {program.returncode}"
        assert not victim.returncode, f"the other client's program has failed: {victim.returncode}"
        report = f"{seen}, at most {peak // MIB} MiB and {queued:.0f} queued requests"
        assert lives(self.server), f"the server has ended: {report}"
        busy = (self.processor_seconds() - used) / (time.monotonic() - begin)
        report += f", {busy:.2f} processors for the server, load {os.getloadavg()[0]:.1f}"
        return Outcome(report, json.loads(seen), json.loads(found), queued)


@contextmanager
def attacked(attack: Attack, folder: Path) -> Iterator[Attacked]:
    options, authority = ["--drain-timeout=1s", *attack.options], Authority("servers")
    if attack.tls:
        options += files_of(folder, authority.server())
    if attack.moves_sessions:
        options.append(f"--session-key-file={session_calls.write_key(folder, 'key')}")
    attacker, victim = ["--source=127.0.0.2"], []
    if attack.attacker != "peer":
        both = tokens.line("attacker", "a-secret"), tokens.line("other", "b-secret")
        options.append(f"--token-file={tokens.write(folder / 'tokens', *both)}")
        (folder / "attacker").write_text("a-secret")
        (folder / "other").write_text("b-secret")
        victim = [f"--token-file={folder / 'other'}"]
        if attack.attacker == "client":
            attacker = [f"--token-file={folder / 'attacker'}"]
    trusted = authority.pem if attack.tls else None
    with memory_group(MEMORY_BYTES) as group:
        program = folder / "limited-server"
        joins = "" if group is None else f'echo $$ >"{group}/cgroup.procs"\n'
        program.write_text(f'#!/bin/bash\n{joins}exec "{BINARY}" "$@"\n')
        program.chmod(0o755)
        with Server(ROOT / "models/zoo", folder / "server", *options, program=program, trusted=trusted) as server:
            ports = [f"--grpc=127.0.0.1:{server.grpc_port}", f"--http=127.0.0.1:{server.http_port}"]
            ports += ["--tls"] if attack.tls else []
            yield Attacked(server, attack.attacker != "peer", ports + attacker, ports + victim)


def lives(server: Server) -> bool:
    return server.process.poll() is None


def too_slow(quiet: Measured, during: Measured, attack: Attack) -> list[str]:
    """The kinds of calls that failed or took too long."""
    slow = []
    for kind, one in during.items():
        limit = LIVEZ_MILLISECONDS if kind == "/livez" else max(SLOWER * quiet[kind]["p99"], MILLISECONDS)
        if kind == LARGE:
            limit = PATIENCE * 1000 if attack.bodies else math.inf
        if limit < math.inf and (one["failures"] or one["p99"] > limit):
            slow.append(kind)
    return slow


def lines(quiet: Measured, during: Measured) -> Iterator[str]:
    for kind, one in during.items():
        yield (
            f"{kind}: p99 {quiet[kind]['p99']:.1f} ms quiet, {one['p99']:.1f} ms attacked, longest "
            f"{one['longest']:.0f} ms, of {one['calls']}, {one['failures']}"
        )


@pytest.mark.parametrize("name", ATTACKS)
def test_others_are_served_all_along(tmp_path: Path, name: str) -> None:
    attack = ATTACKS[name]
    with attacked(attack, tmp_path) as here:
        here.measure(0.5)  # what is made at the first calls
        quiet, before = here.calm(), here.memory()
        seconds = max(SECONDS, attack.least_seconds)
        outcome = here.suffer(attack, seconds)
        slow = too_slow(quiet, outcome.others, attack)
        # On a busy machine the attack itself may be too slow to say anything.
        while not slow and set(attack.served) - outcome.seen.keys() and seconds < LONGEST * SECONDS:
            seconds *= 2
            outcome = here.suffer(attack, seconds)
            slow = too_slow(quiet, outcome.others, attack)
        report = "\n  ".join([f"{outcome.report}, {before // MIB} MiB before", *lines(quiet, outcome.others)])
        print(f"{name}: {report}")
        end = time.monotonic() + RECOVERY_SECONDS
        while (left := here.left(before)) and time.monotonic() < end:
            time.sleep(0.1)
        assert not left, f"{left} after {RECOVERY_SECONDS} s: {report}"
        assert not slow, f"{slow} take too long: {report}"
        assert outcome.queued <= attack.most_queued, report
        assert set(attack.served) <= outcome.seen.keys(), report

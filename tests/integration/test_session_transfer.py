"""Conversations that move from one server to another."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import expect, model_directory, session_calls
from integration.server_process import BINARY, Server, less, run, workers
from integration.session_calls import expect_same, write_key

CLIENT = BINARY.with_name("longshort")
ALICE = [("x-client-id", "alice")]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("keys")
    return SimpleNamespace(shared=write_key(folder, "shared"), other=write_key(folder, "other"))


@pytest.fixture(scope="module")
def here(repository: Path, keys: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(repository, tmp_path_factory.mktemp("here"), f"--session-key-file={keys.shared}") as server:
        yield server


@pytest.fixture(scope="module")
def there(repository: Path, keys: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(repository, tmp_path_factory.mktemp("there"), f"--session-key-file={keys.shared}") as server:
        yield server


def say(api: SimpleNamespace, server: Server, session: str, prompt: str, **sampling: Any) -> Any:
    return session_calls.say(api, server, session, prompt, ALICE, **sampling)


def export(api: SimpleNamespace, server: Server, session: str) -> list[Any]:
    stub = api.sessions_grpc.SessionsStub(server.channel)
    request = api.sessions.ExportSessionRequest(session_id=session)
    return list(stub.ExportSession(request, timeout=30, metadata=ALICE))


def import_parts(
    api: SimpleNamespace, server: Server, session: str, parts: list[Any], client: list[Any] | None = None
) -> Any:
    stub = api.sessions_grpc.SessionsStub(server.channel)
    messages = [api.sessions.ImportSessionRequest(beginning={"session_id": session})]
    messages += [api.sessions.ImportSessionRequest(part=part) for part in parts]
    return stub.ImportSession(iter(messages), timeout=30, metadata=ALICE if client is None else client)


def close(api: SimpleNamespace, server: Server, session: str) -> None:
    stub = api.sessions_grpc.SessionsStub(server.channel)
    stub.CloseSession(api.sessions.CloseSessionRequest(session_id=session), timeout=30, metadata=ALICE)


@pytest.fixture(scope="module")
def parts(api: SimpleNamespace, here: Server) -> list[Any]:
    """A session of `here`, exported."""
    say(api, here, "exported", "It was a dark and stormy night; ", seed=3)
    return export(api, here, "exported")


@pytest.mark.parametrize("sampling", [{"temperature": 0.0}, {"temperature": 1.0, "seed": 7}])
def test_a_session_goes_on_there_as_it_does_here(
    api: SimpleNamespace, here: Server, there: Server, sampling: dict[str, Any]
) -> None:
    say(api, there, "other", "something else " * 20, seed=1)
    session = f"tale-{len(sampling)}"
    first = say(api, here, session, "Once upon a time there was a tower, and " * 8, **sampling)
    imported = import_parts(api, there, session, export(api, here, session))
    assert imported.session_tokens == first.session_tokens
    for prompt in ("in it", " lived a rapunzel " * 5):
        stayed = say(api, here, session, prompt, **sampling)
        moved = say(api, there, session, prompt, **sampling)
        expect_same(moved.completions[0], stayed.completions[0])
        assert moved.usage == stayed.usage
        assert moved.usage.cached_tokens == first.session_tokens - 1, "all but the token that was sampled last"
        assert moved.session_tokens == stayed.session_tokens
        first = stayed


def test_it_goes_on_with_workers_of_other_threads(
    api: SimpleNamespace, here: Server, repository: Path, keys: SimpleNamespace, tmp_path: Path
) -> None:
    said = say(api, here, "threads", "Once upon a time there was a tower, and " * 8, seed=7)
    key = f"--session-key-file={keys.shared}"
    with Server(repository, tmp_path, key, workers(2)) as several:
        import_parts(api, several, "threads", export(api, here, "threads"))
        stayed = say(api, here, "threads", "in it", seed=7)
        moved = say(api, several, "threads", "in it", seed=7)
    expect_same(moved.completions[0], stayed.completions[0])
    assert moved.usage.cached_tokens == said.session_tokens - 1


def test_an_exported_session_says_what_it_is(api: SimpleNamespace, parts: list[Any], here: Server) -> None:
    models = api.models_grpc.ModelsStub(here.channel)
    header = parts[0].header
    assert header.fingerprint == models.GetModel(api.models.GetModelRequest()).fingerprint
    assert header.data_bytes == sum(len(part.data) for part in parts)
    assert header.session_tokens == 32 + 40
    assert all(len(part.data) <= 1 << 20 for part in parts)
    assert len(parts[-1].seal.checksum) == len(parts[-1].seal.authentication_code) == 32


def test_the_same_history_gives_the_same_bytes(api: SimpleNamespace, here: Server, there: Server) -> None:
    """Nothing of what the pages held before goes along. One token is not cut into steps, so there is no rounding."""
    for server in (here, there):
        for seed in range(5):
            say(api, server, f"filler-{seed}", f"{seed} filler " * less(50), seed=seed)
        say(api, server, "same", "x", temperature=0.0)
    assert export(api, here, "same")[1:-1] == export(api, there, "same")[1:-1]


def test_what_is_cut_or_changed_is_never_imported(api: SimpleNamespace, there: Server, parts: list[Any]) -> None:
    chance = random.Random(5)
    data = b"".join(part.data for part in parts)
    header, seal = parts[0], parts[-1]

    def cut_up(content: bytes) -> list[Any]:
        pieces, at = [], 0
        while at < len(content):
            step = chance.choice([chance.randint(1, 64), 65536, 1 << 20])
            pieces.append(api.sessions.SessionPart(data=content[at : at + step]))
            at += step
        return pieces

    for trial in range(200):
        flipped = bytearray(data)
        # Half of them in the description, which stands before the cache.
        flipped[chance.randrange(200 if trial % 2 else len(data))] ^= 1 << chance.randrange(8)
        with expect.error(grpc.StatusCode.DATA_LOSS):
            import_parts(api, there, "broken", [header, *cut_up(bytes(flipped)), seal])
        length = chance.randrange(len(data))
        with expect.error(grpc.StatusCode.DATA_LOSS):
            import_parts(api, there, "broken", [header, *cut_up(data[:length]), *([seal] if trial % 2 else [])])
    with expect.error(grpc.StatusCode.NOT_FOUND):
        close(api, there, "broken")
    assert import_parts(api, there, "broken", [header, *cut_up(data), seal]).session_tokens == 72, "however it is cut"
    close(api, there, "broken")


def test_a_session_belongs_to_its_client_and_its_name_to_one(
    api: SimpleNamespace, here: Server, there: Server, parts: list[Any]
) -> None:
    with expect.error(grpc.StatusCode.PERMISSION_DENIED, "another client"):
        import_parts(api, there, "stolen", parts, [("x-client-id", "mallory")])
    with expect.error(grpc.StatusCode.PERMISSION_DENIED, "another client"):
        import_parts(api, there, "stolen", parts, [])
    stub = api.sessions_grpc.SessionsStub(here.channel)
    with expect.error(grpc.StatusCode.NOT_FOUND, "exported"):
        list(stub.ExportSession(api.sessions.ExportSessionRequest(session_id="exported")))
    with expect.error(grpc.StatusCode.ABORTED, "this server exported the session"):
        import_parts(api, here, "exported", parts)
    for _ in range(2):
        assert import_parts(api, there, "exported", parts).session_tokens == 72, "a second import changes nothing"
    say(api, here, "taken", "another beginning")
    with expect.error(grpc.StatusCode.ALREADY_EXISTS, "another session taken already exists"):
        import_parts(api, here, "taken", parts)


def test_servers_with_other_keys_or_none_take_nothing(
    api: SimpleNamespace,
    server: Server,
    repository: Path,
    keys: SimpleNamespace,
    parts: list[Any],
    tmp_path: Path,
) -> None:
    with expect.error(grpc.StatusCode.FAILED_PRECONDITION, "--session-key-file"):
        import_parts(api, server, "moved", parts)
    with expect.error(grpc.StatusCode.FAILED_PRECONDITION, "--session-key-file"):
        export(api, server, "moved")
    with (
        Server(repository, tmp_path, f"--session-key-file={keys.other}") as stranger,
        expect.error(grpc.StatusCode.PERMISSION_DENIED, "another --session-key-file"),
    ):
        import_parts(api, stranger, "moved", parts)


def test_another_model_takes_nothing(
    api: SimpleNamespace, repository: Path, keys: SimpleNamespace, parts: list[Any], tmp_path: Path
) -> None:
    other = tmp_path / "repository"
    model_directory.write(other, seed=99)
    key = f"--session-key-file={keys.shared}"
    with (
        Server(other, tmp_path / "other", key) as server,
        expect.error(grpc.StatusCode.FAILED_PRECONDITION, "fingerprint"),
    ):
        import_parts(api, server, "moved", parts)
    with (
        Server(repository, tmp_path / "bf16", key, "--precision=bf16") as server,
        expect.error(grpc.StatusCode.FAILED_PRECONDITION, "precision"),
    ):
        import_parts(api, server, "moved", parts)


def test_a_key_file_that_is_none_is_named(repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"short")
    path.chmod(0o600)
    done = run(f"--model-repository={repository}", "--check-config", f"--session-key-file={path}")
    assert done.returncode == 1
    assert f"--session-key-file={path} has 5 bytes" in done.stderr


def test_the_client_program_moves_and_ends_sessions(
    api: SimpleNamespace, here: Server, there: Server, tmp_path: Path
) -> None:
    say(api, here, "piped", "by hand", temperature=0.0)
    file = tmp_path / "piped.session"

    def longshort(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [CLIENT, f"--server=127.0.0.1:{server.grpc_port}", "--client-id=alice", "session", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    exported = longshort(here, "export", "piped", str(file))
    assert exported.returncode == 0, exported.stderr
    assert "47 tokens" in exported.stdout
    imported = longshort(there, "import", "renamed", str(file))
    assert imported.returncode == 0, imported.stderr
    assert longshort(here, "close", "piped").returncode == 0
    assert longshort(here, "close", "piped").returncode == 2
    assert say(api, there, "renamed", "!").usage.cached_tokens == 46

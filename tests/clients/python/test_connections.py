"""TLS, client certificates, tokens: working ones, replaced ones, and the errors of wrong ones."""

from __future__ import annotations

import datetime
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import longshort
import pytest
from integration import certificates, tokens
from integration.certificates import DAY, Authority, tls_options, write_at_once, write_pairs
from integration.server_process import Server, wait_until
from longshort.connection import Connection, is_this_machine, split_servers

from clients.python.drivers import Driver

HASTY = longshort.RetryPolicy(attempts=2, first_wait=0.01)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("servers")


@pytest.fixture(scope="module")
def clients() -> Authority:
    return Authority("clients")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, authority: Authority, clients: Authority) -> Path:
    """A folder with ca.pem, clients.pem, and right and wrong pairs."""
    made = tmp_path_factory.mktemp("certificates")
    write_pairs(made, authority, clients)
    return made


@pytest.fixture(scope="module")
def tls_server(repository: Path, folder: Path, authority: Authority) -> Iterator[Server]:
    with Server(repository, folder / "one", *tls_options(folder), trusted=authority.pem) as running:
        yield running


@pytest.fixture(scope="module")
def mutual_server(repository: Path, folder: Path, authority: Authority) -> Iterator[Server]:
    more = f"--tls-client-ca={folder}/clients.pem"
    with Server(repository, folder / "two", *tls_options(folder), more, trusted=authority.pem) as running:
        yield running


def models(driver: Driver, server: Server, host: str = "127.0.0.1", **options: Any) -> list[longshort.Model]:
    """Lists the models with a client of these options."""
    client = driver.client(f"{host}:{server.grpc_port}", **{"retry": HASTY, **options})
    try:
        answer: list[longshort.Model] = driver.done(client.models(timeout=20))
        return answer
    finally:
        driver.done(client.close())


def likely_cause(driver: Driver, server: Server, **options: Any) -> str:
    with pytest.raises(longshort.Unavailable) as caught:
        models(driver, server, **options)
    return caught.value.message.partition("; likely cause: ")[2]


def own(folder: Path, name: str) -> dict[str, Path]:
    return {"tls_certificate": folder / f"{name}.pem", "tls_key": folder / f"{name}.key"}


def test_encrypted(driver: Driver, tls_server: Server, folder: Path) -> None:
    assert models(driver, tls_server, tls_ca=folder / "ca.pem")
    assert models(driver, tls_server, host="localhost", tls_ca=folder / "ca.pem")
    assert models(driver, tls_server, tls_ca=str(folder / "ca.pem"), tls_server_name="localhost")


def test_with_a_certificate_of_the_client(driver: Driver, mutual_server: Server, folder: Path) -> None:
    assert models(driver, mutual_server, tls_ca=folder / "ca.pem", **own(folder, "alice"))


def test_one_side_speaks_tls(driver: Driver, tls_server: Server, server: Server, folder: Path) -> None:
    cause = likely_cause(driver, tls_server)
    assert cause == "the server uses TLS: give tls_ca with its CA, or tls if this system trusts that CA"
    cause = likely_cause(driver, server, tls_ca=folder / "ca.pem")
    assert cause.startswith("the server") and "does not use TLS on this port" in cause


def test_the_wrong_authority_or_name(driver: Driver, tls_server: Server, folder: Path) -> None:
    cause = likely_cause(driver, tls_server, tls_ca=folder / "strangers.pem")
    assert cause == f"the server's certificate was not signed by a CA of tls_ca={folder / 'strangers.pem'}"
    assert "not signed by a CA that this system trusts: give tls_ca" in likely_cause(driver, tls_server, tls=True)
    cause = likely_cause(driver, tls_server, tls_ca=folder / "ca.pem", tls_server_name="elsewhere.example")
    assert "is not for elsewhere.example: server or tls_server_name must be a name in it" in cause


def test_the_wrong_authority_is_an_error_without_another_try(driver: Driver, tls_server: Server, folder: Path) -> None:
    patient = longshort.RetryPolicy(first_wait=1000, longest_wait=1000)
    assert likely_cause(driver, tls_server, tls_ca=folder / "strangers.pem", retry=patient)


def test_the_server_wants_another_certificate(driver: Driver, mutual_server: Server, folder: Path) -> None:
    cause = likely_cause(driver, mutual_server, tls_ca=folder / "ca.pem")
    assert cause == "the server requires a client certificate: give tls_certificate and tls_key"
    cause = likely_cause(driver, mutual_server, tls_ca=folder / "ca.pem", **own(folder, "mallory"))
    assert f"after it received tls_certificate={folder / 'mallory.pem'}" in cause
    assert "the server may not trust its CA" in cause


def test_no_server_at_the_address(driver: Driver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = driver.client(f"127.0.0.1:{port}", retry=HASTY)
    with pytest.raises(longshort.Unavailable, match=f"cannot connect to 127.0.0.1 on port {port}: Connection refused"):
        driver.done(client.models())
    driver.done(client.close())


@contextmanager
def silence() -> Iterator[str]:
    """The address of a server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    held.append(listening.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        for one in held:
            one.close()


def test_who_says_nothing_ends_by_the_deadline(driver: Driver) -> None:
    with silence() as address:
        client = driver.client(address)
        with pytest.raises(longshort.DeadlineExceeded):
            driver.done(client.models(timeout=0.5))
        driver.done(client.close())


def test_a_server_replaces_its_certificate(
    driver: Driver, repository: Path, folder: Path, tmp_path: Path, authority: Authority
) -> None:
    """The new certificate is of another authority. The client reads tls_ca again when the handshake fails."""
    other = Authority("others")
    write_at_once(tmp_path / "ca.pem", authority.pem)
    authority.server().write(tmp_path, "server")
    options = tls_options(tmp_path)
    with Server(repository, tmp_path / "0", *options, trusted=authority.pem) as server:
        client = driver.client(
            f"127.0.0.1:{server.grpc_port}", tls_ca=tmp_path / "ca.pem", retry=longshort.RetryPolicy(attempts=20)
        )
        assert driver.done(client.models())
        stream = client.generate("x", max_tokens=60000)
        assert driver.done(stream.deltas().__anext__() if driver.kind == "async" else next(stream.deltas()))
        server.process.kill()
    pair = other.server()
    pair.write(tmp_path, "server")
    with Server(repository, tmp_path / "1", *options, grpc_port=server.grpc_port, trusted=other.pem) as server:
        with pytest.raises(longshort.Unavailable, match="not signed by a CA of tls_ca"):
            driver.done(client.models())
        write_at_once(tmp_path / "ca.pem", authority.pem + other.pem)

        def answers() -> bool:
            try:
                return bool(driver.done(client.models()))
            except longshort.Unavailable:
                return False

        wait_until(answers)

        # The running server takes a new certificate of the same authority: nothing is to be done.
        third = other.server()
        third.write(tmp_path, "server")
        wait_until(lambda: "TLS files replaced" in server.log())
        assert driver.done(client.models())
        assert models(driver, server, tls_ca=tmp_path / "ca.pem")
        driver.done(client.close())


def test_tokens_are_shown(driver: Driver, repository: Path, tmp_path: Path) -> None:
    file = tokens.write(
        tmp_path / "tokens", tokens.line("alice", "secret"), tokens.line("bob", "other", "scopes=observe")
    )
    (tmp_path / "mine").write_text("secret\n")
    with Server(repository, tmp_path / "server", f"--token-file={file}") as server:
        assert models(driver, server, token="secret")
        assert models(driver, server, token_file=tmp_path / "mine")
        with pytest.raises(longshort.Unauthenticated):
            models(driver, server)
        with pytest.raises(longshort.PermissionDenied, match="infer"):
            models(driver, server, token="other")
        (tmp_path / "mine").write_text("wrong")
        with pytest.raises(longshort.Unauthenticated, match=rf"token_file={tmp_path / 'mine'}"):
            models(driver, server, token_file=tmp_path / "mine")


def test_an_expired_token_is_renewed_in_its_file(driver: Driver, repository: Path, tmp_path: Path) -> None:
    soon = certificates.now() - datetime.timedelta(seconds=1)
    line = tokens.line("alice", "old", f"scopes=infer expires={soon:%Y-%m-%dT%H:%M:%SZ}")
    file = tokens.write(tmp_path / "tokens", line, tokens.line("alice", "new", "scopes=infer"))
    mine = write_at_once(tmp_path / "mine", b"old\n")
    with Server(repository, tmp_path / "server", f"--token-file={file}") as server:
        client = driver.client(f"127.0.0.1:{server.grpc_port}", token_file=mine)
        with pytest.raises(longshort.Unauthenticated, match="expired"):
            driver.done(client.models())
        write_at_once(mine, b"new\n")
        assert driver.done(client.models())
        mine.unlink()
        assert driver.done(client.models()), "a file that is gone for a while changes nothing"
        write_at_once(mine, b"two words\n")
        assert driver.done(client.models())
        write_at_once(mine, b"old\n")
        with pytest.raises(longshort.Unauthenticated, match="expired"):
            driver.done(client.models())
        driver.done(client.close())


@pytest.mark.parametrize(
    ("server", "own"),
    [
        ("127.0.0.1:1", True),
        ("127.0.0.9:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("unix:/run/longshort", True),
        ("127.0.0.1.example.org:1", False),
        ("localhost.example.org:1", False),
        ("10.0.0.1:1", False),
        ("example.org:1", False),
        ("dns:///127.0.0.1:1", False),
    ],
)
def test_a_token_leaves_this_machine_only_encrypted(driver: Driver, server: str, own: bool) -> None:
    assert is_this_machine(server) == own
    if own:
        driver.done(driver.client(server, token="secret").close())
        return
    for servers in (server, ["127.0.0.1:1", server], f"127.0.0.1:1,{server}"):
        with pytest.raises(ValueError, match=f"the token would be sent unencrypted to {server}"):
            driver.client(servers, token="secret")
    driver.done(driver.client(server, token="secret", insecure=True).close())
    driver.done(driver.client(server, token="secret", tls=True).close())


def test_options_that_cannot_be_used(driver: Driver, folder: Path, tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"server": ""}, "server is"),
        ({"server": []}, "server is"),
        ({"tls_certificate": folder / "alice.pem"}, "tls_certificate and tls_key must be given together"),
        ({"token": "a", "token_file": tmp_path / "a"}, "token or token_file, not both"),
        ({"token": "two words"}, "token must contain one token"),
        ({"token_file": tmp_path / "none"}, f"token_file={tmp_path / 'none'} cannot be read: No such file"),
        ({"tls_ca": tmp_path / "none"}, f"tls_ca={tmp_path / 'none'} cannot be read: No such file"),
        ({"tls_ca": __file__}, "is not a PEM file"),
        ({"model": "tiny/0"}, "with a version of at least 1"),
        ({"timeout": 0}, "timeout is 0"),
    ]
    for options, message in wrong:
        with pytest.raises(ValueError, match=message):
            driver.client(**options)


def test_a_plain_token_is_kept_from_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    def asks_no_proxy(**options: Any) -> bool:
        return ("grpc.enable_http_proxy", 0) in Connection(**options).channel_options()

    assert asks_no_proxy(servers=("localhost:1",), token="secret")
    assert not asks_no_proxy(servers=("localhost:1",))
    assert not asks_no_proxy(servers=("localhost:1",), token="secret", tls=True)
    assert not asks_no_proxy(servers=("localhost:1",), token="secret", insecure=True)
    assert "secret" not in repr(Connection(servers=("localhost:1",), token="secret"))


def test_addresses() -> None:
    assert split_servers("a:1, b:2") == ("a:1", "b:2")
    assert split_servers(["a:1", "b:2"]) == ("a:1", "b:2")
    assert split_servers("ipv4:10.0.0.1:1,10.0.0.2:1") == ("ipv4:10.0.0.1:1,10.0.0.2:1",)


def test_a_server_that_protects_health(driver: Driver, repository: Path, tmp_path: Path) -> None:
    file = tokens.write(tmp_path / "tokens", tokens.line("alice", "secret"))
    with Server(repository, tmp_path / "server", f"--token-file={file}", "--protect-health") as server:
        assert models(driver, server, token="secret", health_check=False)


def test_certificates_that_are_out_of_date(driver: Driver, folder: Path, tmp_path: Path, authority: Authority) -> None:
    """A Longshort server shows no such certificate, so Python's own TLS does."""
    import ssl

    authority.server(end=-DAY / 2).write(tmp_path, "late")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "late.pem", tmp_path / "late.key")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def shake_hands() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                    context.wrap_socket(connection, server_side=True).close()
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        threading.Thread(target=shake_hands, daemon=True).start()
        client = driver.client(f"127.0.0.1:{listening.getsockname()[1]}", tls_ca=folder / "ca.pem", retry=HASTY)
        with pytest.raises(longshort.Unavailable, match="certificate or a certificate above it has expired"):
            driver.done(client.models())
        driver.done(client.close())
        listening.shutdown(socket.SHUT_RDWR)

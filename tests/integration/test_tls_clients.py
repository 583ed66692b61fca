"""The client programs before servers with and without TLS: what they do, and what they say is wrong."""

from __future__ import annotations

import http.server
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import longshort
import pytest

from integration.certificates import DAY, Authority, tls_options, write_at_once, write_pairs
from integration.server_process import BINARY, ROOT, Server

CLIENT = BINARY.with_name("longshort")
LOAD = BINARY.with_name("longshort-load")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, authority: Authority, clients: Authority) -> Path:
    """ca.pem, clients.pem, and pairs that are right and wrong."""
    made = tmp_path_factory.mktemp("certificates")
    write_pairs(made, authority, clients)
    clients.client("late", end=-DAY / 2).write(made, "late")
    return made


@pytest.fixture(scope="module")
def tls_server(repository: Path, folder: Path, authority: Authority) -> Iterator[Server]:
    with Server(repository, folder / "one", *tls_options(folder), trusted=authority.pem) as running:
        yield running


@pytest.fixture(scope="module")
def mutual_server(repository: Path, folder: Path, authority: Authority, clients: Authority) -> Iterator[Server]:
    """One that wants clients' certificates, and has revoked bob's."""
    bob = clients.client("bob")
    bob.write(folder, "bob")
    write_at_once(folder / "revoked.pem", clients.revocations(bob))
    more = [f"--tls-client-ca={folder}/clients.pem", f"--tls-client-crl={folder}/revoked.pem"]
    with Server(repository, folder / "two", *tls_options(folder), *more, trusted=authority.pem) as running:
        yield running


def client(port: int, *options: str | Path, host: str = "127.0.0.1") -> subprocess.CompletedProcess[str]:
    command = [CLIENT, f"--server={host}:{port}", *options, "models"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def load(port: int, *options: str | Path, host: str = "127.0.0.1") -> subprocess.CompletedProcess[str]:
    workload = "--workload=generate,prompt=8,tokens=2,requests=5,concurrency=1"
    command = [LOAD, f"--server={host}:{port}", workload, "--warm-up=0s", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def likely_cause(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 3, done.stdout + done.stderr
    return re.search(r"^Likely cause: (.*)\.$", done.stderr, re.MULTILINE)[1]


def test_programs_speak_tls(tls_server: Server, folder: Path) -> None:
    trusted = f"--tls-ca={folder}/ca.pem"
    assert client(tls_server.grpc_port, trusted).stdout.startswith("NAME"), "the list of models"
    assert client(tls_server.grpc_port, trusted, "--tls-server-name=localhost").returncode == 0
    done = load(tls_server.grpc_port, trusted)
    assert done.returncode == 0, done.stderr


def test_programs_show_their_certificate(mutual_server: Server, folder: Path) -> None:
    options = [f"--tls-ca={folder}/ca.pem", *tls_options(folder, "alice")]
    assert client(mutual_server.grpc_port, *options).returncode == 0
    assert load(mutual_server.grpc_port, *options).returncode == 0


def test_the_server_s_certificate_is_not_right(
    repository: Path, folder: Path, tmp_path: Path, authority: Authority, tls_server: Server
) -> None:
    port = tls_server.grpc_port
    cause = likely_cause(client(port, f"--tls-ca={folder}/strangers.pem"))
    assert "CN=server" in cause and f"not signed by a CA of --tls-ca={folder}/strangers.pem" in cause
    assert "not signed by a CA that this system trusts: give --tls-ca" in likely_cause(client(port, "--tls"))
    cause = likely_cause(client(port, f"--tls-ca={folder}/ca.pem", "--tls-server-name=elsewhere.example"))
    assert "is not for elsewhere.example, only for 127.0.0.1, localhost" in cause
    done = load(port, f"--tls-ca={folder}/strangers.pem")
    assert done.returncode == 1 and "not signed by a CA of --tls-ca" in done.stderr

    authority.server("elsewhere.example", "2001:db8::1", "\x1b[31mred").write(tmp_path, "other")
    options = tls_options(tmp_path, "other")
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        trusted = f"--tls-ca={folder}/ca.pem"
        assert "is not for 127.0.0.1, only for elsewhere.example, 2001:db8::1, \\x1b[31mred:" in likely_cause(
            client(server.grpc_port, trusted)
        )
        assert client(server.grpc_port, trusted, "--tls-server-name=elsewhere.example").returncode == 0


def test_a_throw_away_certificate_is_for_the_names_that_are_given(repository: Path, tmp_path: Path) -> None:
    make = [ROOT / "deploy/throw-away-certificates", tmp_path / "made"]
    subprocess.run([*make, "model.example.org", "192.0.2.7", "2001:db8::7"], check=True)
    for wrong in ("localhost:8600", "https://model.example.org", ""):
        done = subprocess.run([*make, wrong], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and f"'{wrong}' is not a host name or an IP address" in done.stderr
    pair = (f"--tls-certificate={tmp_path}/made/server.pem", f"--tls-key={tmp_path}/made/server.key")
    with Server(repository, tmp_path, *pair, trusted=(tmp_path / "made/ca.pem").read_bytes()) as server:
        trusted = f"--tls-ca={tmp_path}/made/ca.pem"
        for name in ("127.0.0.1", "model.example.org", "192.0.2.7", "2001:db8::7"):
            done = client(server.grpc_port, trusted, f"--tls-server-name={name}")
            assert done.returncode == 0, done.stderr
        context = ssl.create_default_context(cafile=tmp_path / "made/ca.pem")
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # as Python 3.13 does by default
        address = ("127.0.0.1", server.http_port)
        with socket.create_connection(address) as opened, context.wrap_socket(opened, server_hostname="192.0.2.7"):
            pass


def test_a_certificate_that_is_out_of_date(folder: Path, tmp_path: Path, authority: Authority) -> None:
    """No server of ours shows one, so OpenSSL's does."""
    for begin, end, part in ((-3 * DAY, -DAY, "has expired"), (DAY, 2 * DAY, "is not valid yet")):
        certificate, key = authority.server(begin=begin, end=end).write(tmp_path, "dated")
        with openssl_server("-cert", certificate, "-key", key) as port:
            assert part in likely_cause(client(port, f"--tls-ca={folder}/ca.pem"))


@contextmanager
def openssl_server(*options: str | Path, alpn: str = "h2") -> Iterator[int]:
    """`openssl s_server`, and its port."""
    command = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-alpn", alpn, *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            for line in server.stdout:
                if found := re.match(rb"ACCEPT 127\.0\.0\.1:(\d+)", line):
                    yield int(found[1])
                    break
        finally:
            server.kill()


def test_one_side_alone_speaks_tls(server: Server, tls_server: Server, folder: Path) -> None:
    cause = likely_cause(client(server.grpc_port, f"--tls-ca={folder}/ca.pem"))
    assert "the server does not use TLS on this port" in cause
    assert "the server uses TLS: give --tls-ca=FILE" in likely_cause(client(tls_server.grpc_port))
    assert "the server uses TLS" in load(tls_server.grpc_port).stderr


def test_the_client_s_certificate_is_not_right(mutual_server: Server, folder: Path) -> None:
    port, trusted = mutual_server.grpc_port, f"--tls-ca={folder}/ca.pem"
    assert "the server requires a client certificate" in likely_cause(client(port, trusted))
    assert "the server uses TLS" in likely_cause(client(port))
    for name in ("mallory", "bob"):
        cause = likely_cause(client(port, trusted, *tls_options(folder, name)))
        assert f"closed the connection after it received --tls-certificate={folder}/{name}.pem" in cause
    late = client(port, trusted, *tls_options(folder, "late"))
    assert late.returncode == 1 and f"{folder}/late.pem" in late.stderr and "expired at" in late.stderr


def test_no_server_at_the_address() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))  # and does not listen
        port = holder.getsockname()[1]
        assert "cannot connect to 127.0.0.1" in likely_cause(client(port))
    assert "cannot resolve the host name no-such-host.invalid" in likely_cause(client(1, host="no-such-host.invalid"))


def test_wrong_files_of_a_client_are_named(folder: Path, tmp_path: Path) -> None:
    text = write_at_once(tmp_path / "text", b"two words\n")
    empty = write_at_once(tmp_path / "empty", b"\n")
    certificate, key = tls_options(folder, "alice")
    for options, *parts in (
        ([f"--tls-ca={tmp_path}/none"], "--tls-ca", f"{tmp_path}/none", "No such file"),
        ([f"--tls-ca={text}"], str(text), "no certificate in PEM form"),
        ([certificate], "--tls-certificate and --tls-key must be given together"),
        ([certificate, f"--tls-key={folder}/late.key"], "late.key is not the key of the certificate CN=alice"),
        ([f"--tls-certificate={tmp_path}/none", key], f"{tmp_path}/none", "No such file"),
        ([f"--token-file={tmp_path}/none"], "--token-file", f"{tmp_path}/none", "No such file"),
        ([f"--token-file={text}"], str(text), "must contain one token"),
        ([f"--token-file={empty}"], str(empty), "must contain one token"),
    ):
        for run in (client, load):
            done = run(1, *options)
            assert done.returncode == 1, (options, done.stderr)
            for part in parts:
                assert part in done.stderr, options


class Listener:
    """Keeps what the first connection to it sends. Use as a context manager."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(60)
        self.port: int = self._socket.getsockname()[1]
        self.received = b""
        self._thread = threading.Thread(target=self._receive)

    def _receive(self) -> None:
        connection, _ = self._socket.accept()
        with connection:
            connection.settimeout(60)
            connection.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))  # HTTP/2's settings
            while b"Bearer" not in self.received and (part := connection.recv(1 << 16)):
                self.received += part

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._socket.close()


def test_a_token_goes_to_this_machine_or_encrypted(tmp_path: Path, tls_server: Server, folder: Path) -> None:
    token = write_at_once(tmp_path / "token", b"c2VjcmV0\n")
    with Listener() as listener:
        assert client(listener.port, f"--token-file={token}", "--timeout=3s").returncode in (3, 4)
    assert b"Bearer c2VjcmV0" in listener.received
    assert client(tls_server.grpc_port, f"--tls-ca={folder}/ca.pem", f"--token-file={token}").returncode == 0
    # Of the last one only this test knows that it is this machine.
    for host in ("192.0.2.1", "example.org", "127.example.org", "dns:127.0.0.1"):
        refused = client(1, f"--token-file={token}", "--timeout=1s", host=host)
        assert refused.returncode == 1 and "the token would be sent unencrypted" in refused.stderr
    with Listener() as listener:
        client(listener.port, f"--token-file={token}", "--timeout=3s", "--insecure", host="dns:127.0.0.1")
    assert b"Bearer c2VjcmV0" in listener.received
    assert client(1, f"--token-file={token}", "--tls", host="dns:127.0.0.1").returncode in (3, 4)


@contextmanager
def refusing_proxy() -> Iterator[int]:
    """A proxy that answers every request with 403, and its port."""

    class Refuse(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:  # noqa: N802
            self.send_error(403)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuse) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield proxy.server_address[1]
        finally:
            proxy.shutdown()


def test_a_proxy_that_catches_the_connection_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("no_grpc_proxy", "no_proxy", "grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(variable, raising=False)
    hint = "http_proxy is set: gRPC connects through this proxy, except to the hosts in no_proxy"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    with refusing_proxy() as refusing:
        for proxy in (f"127.0.0.1:{closed}", f"127.0.0.1:{refusing}", "no-such-host.invalid:3128"):
            monkeypatch.setenv("http_proxy", f"http://{proxy}")
            done = client(server.grpc_port)
            assert done.returncode == 3 and f"{hint}.\n" in done.stderr, done.stderr
            options = {"retry": longshort.RetryPolicy(attempts=1), "timeout": 20}
            with longshort.Client(server.address, **options) as caught, pytest.raises(longshort.Unavailable) as error:
                caught.models()
            assert error.value.message.endswith(f"; {hint}")
    # An empty variable, though before the other one, means no proxy.
    monkeypatch.setenv("grpc_proxy", "")
    assert client(server.grpc_port).returncode == 0
    assert "is set" not in client(closed).stderr


def test_the_https_port_is_not_grpc_s(tls_server: Server, folder: Path) -> None:
    port = tls_server.http_port
    hint = f"port {port} speaks HTTP/1.1, as a server's HTTP port does: give the port of gRPC (--listen)"
    hint += ", by default 8500"
    assert likely_cause(client(port, f"--tls-ca={folder}/ca.pem")) == hint
    wrong = longshort.Client(f"127.0.0.1:{port}", tls_ca=folder / "ca.pem")
    with wrong, pytest.raises(longshort.Unavailable) as error:
        wrong.models()
    assert f"likely cause: {hint}" in str(error.value)


def test_a_server_that_refuses_http2_is_named(folder: Path) -> None:
    """Other servers end the handshake, where ours goes on without a protocol."""
    pair = ("-cert", folder / "server.pem", "-key", folder / "server.key")
    hint = "speaks HTTP/1.1, as a server's HTTP port does"
    with openssl_server(*pair, alpn="http/1.1") as port:
        assert hint in likely_cause(client(port, f"--tls-ca={folder}/ca.pem"))
        wrong = longshort.Client(f"127.0.0.1:{port}", tls_ca=folder / "ca.pem")
        with wrong, pytest.raises(longshort.Unavailable, match=hint):
            wrong.models()


def test_the_usual_slips_are_explained(server: Server) -> None:
    hint = "HTTP/1.1, as a server's HTTP port does: give the port of gRPC"
    assert hint in likely_cause(client(server.http_port))
    for scheme in ("http", "https", "grpc", "grpcs", "GRPC", "tcp"):
        expected = f"it must be HOST:PORT of gRPC, by default port 8500, without {scheme.lower()}://"
        encrypts = scheme in ("https", "grpcs")
        for run in (client, load):
            done = run(server.grpc_port, host=f"{scheme}://127.0.0.1")
            assert done.returncode == 1 and expected in done.stderr, done.stderr
            assert ("; to encrypt give --tls or --tls-ca" in done.stderr) == encrypts
        with pytest.raises(ValueError, match=expected) as refused:
            longshort.Client(f"{scheme}://127.0.0.1:{server.grpc_port}")
        assert ("; to encrypt give tls=True or tls_ca" in str(refused.value)) == encrypts
    for address in ("localhost", "8500", ":8500", "::1:8500", "[::1]", "127.0.0.1:", "127.0.0.1:65536", "a:8500/v1"):
        expected = f"the server {address} is not HOST:PORT with a port from 1 to 65535"
        done = subprocess.run([CLIENT, f"--server={address}", "models"], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and expected in done.stderr, done.stderr
        with pytest.raises(ValueError, match=re.escape(expected)):
            longshort.Client(address)
    assert client(server.grpc_port, host="dns:///127.0.0.1").returncode == 0
    with longshort.Client(f"127.0.0.1:{server.http_port}") as wrong, pytest.raises(longshort.Unavailable) as error:
        wrong.models()
    assert hint in str(error.value)

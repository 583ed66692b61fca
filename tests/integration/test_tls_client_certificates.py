"""Mutual TLS: whose certificate is taken, and until when."""

from __future__ import annotations

import datetime
import socket
import ssl
import time
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest

from integration import expect, http2
from integration.certificates import DAY, Authority, Pair, write_at_once
from integration.server_process import Server, wait_until
from integration.tls_calls import PATIENCE, call, channel_to, files_of, is_taken


def test_clients_bring_a_certificate_that_is_valid_and_known(
    repository: Path, tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    known = write_at_once(tmp_path / "clients.pem", clients.pem)
    options = [*files_of(tmp_path, authority.server()), f"--tls-client-ca={known}"]
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        assert is_taken(server, authority.pem, clients.client("alice"))
        assert not is_taken(server, authority.pem), "without a certificate"
        assert not is_taken(server, authority.pem, Authority("strangers").client("alice"))
        assert not is_taken(server, authority.pem, authority.client("alice")), "the servers' authority is another"
        assert not is_taken(server, authority.pem, clients.client("alice", end=-datetime.timedelta(seconds=1)))
        assert not is_taken(server, authority.pem, clients.client("alice", begin=DAY, end=2 * DAY))
        assert not is_taken(server, authority.pem, clients.server()), "a certificate for servers"
        assert server.http("/readyz")[0] == 200, "probes need no certificate"
        assert server.metric("longshort_tls_certificate_expiry_seconds", file="client_ca") > time.time()


def test_certificates_are_identities(
    api: SimpleNamespace, repository: Path, tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    """gRPC reports the connection's certificate to our admission."""
    known = write_at_once(tmp_path / "clients.pem", clients.pem)
    lines = "web spiffe-id=spiffe://example.org/web scopes=infer\nalice certificate-subject=CN=alice scopes=observe\n"
    tokens = write_at_once(tmp_path / "tokens", lines.encode())
    options = [*files_of(tmp_path, authority.server()), f"--tls-client-ca={known}", f"--token-file={tokens}"]
    request = api.inference.TokenizeRequest(input={"text": "x"})
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        for pair, code in (
            (clients.client("any", "spiffe://example.org/web"), None),
            (clients.client("alice"), grpc.StatusCode.PERMISSION_DENIED),
            (clients.client("bob"), grpc.StatusCode.UNAUTHENTICATED),
            (clients.client("alice", "spiffe://example.org/other"), grpc.StatusCode.UNAUTHENTICATED),
        ):
            with channel_to(server, authority.pem, pair) as channel:
                stub = api.inference_grpc.InferenceStub(channel)
                if code is None:
                    stub.Tokenize(request, timeout=PATIENCE)
                else:
                    with expect.error(code):
                        stub.Tokenize(request, timeout=PATIENCE)
        wait_until(lambda: "rpc=Tokenize" in server.log() and "identity=web" in server.log())


def test_a_revoked_client_is_refused_as_soon_as_the_list_names_it(
    repository: Path, tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    alice, bob = clients.client("alice"), clients.client("bob")
    known = write_at_once(tmp_path / "clients.pem", clients.pem)
    lists = write_at_once(tmp_path / "revoked.pem", clients.revocations(bob))
    options = [*files_of(tmp_path, authority.server()), f"--tls-client-ca={known}", f"--tls-client-crl={lists}"]
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        assert is_taken(server, authority.pem, alice)
        assert not is_taken(server, authority.pem, bob)
        wait_until(lambda: 'client refused why="certificate revoked" common_name=bob' in server.log())
        with channel_to(server, authority.pem, alice) as old:
            call(old)
            write_at_once(lists, clients.revocations(alice))
            wait_until(lambda: not is_taken(server, authority.pem, alice))
            assert is_taken(server, authority.pem, bob)
            call(old)  # a connection that was made before goes on
        wait_until(lambda: "TLS files replaced" in server.log())


def test_every_list_of_an_authority_counts(
    repository: Path, tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    alice, bob, carol = (clients.client(name) for name in ("alice", "bob", "carol"))
    known = write_at_once(tmp_path / "clients.pem", clients.pem)
    lists = write_at_once(tmp_path / "revoked.pem", clients.revocations(alice) + clients.revocations(bob))
    options = [*files_of(tmp_path, authority.server()), f"--tls-client-ca={known}", f"--tls-client-crl={lists}"]
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        assert [is_taken(server, authority.pem, client) for client in (alice, bob, carol)] == [False, False, True]


def test_a_list_out_of_date_refuses_everybody(
    repository: Path, tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    known = write_at_once(tmp_path / "clients.pem", clients.pem)
    soon = datetime.timedelta(seconds=4)
    lists = write_at_once(tmp_path / "revoked.pem", clients.revocations(end=soon))
    options = [*files_of(tmp_path, authority.server()), f"--tls-client-ca={known}", f"--tls-client-crl={lists}"]
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        wait_until(lambda: not is_taken(server, authority.pem, clients.client("alice")))
        wait_until(lambda: "CRL has expired" in server.log())
        write_at_once(lists, clients.revocations())
        wait_until(lambda: is_taken(server, authority.pem, clients.client("alice")))


def test_an_authority_need_not_be_at_the_top(repository: Path, tmp_path: Path, authority: Authority) -> None:
    middle = Authority("middle", above=Authority("top"))
    alice, bob = middle.client("alice"), middle.client("bob")
    known = write_at_once(tmp_path / "clients.pem", middle.pem)
    lists = write_at_once(tmp_path / "revoked.pem", middle.revocations(bob))
    options = [*files_of(tmp_path, authority.server()), f"--tls-client-ca={known}"]
    with Server(repository, tmp_path / "open", *options, trusted=authority.pem) as server:
        assert is_taken(server, authority.pem, alice)
    with Server(
        repository, tmp_path / "listed", *options, f"--tls-client-crl={lists}", trusted=authority.pem
    ) as server:
        assert is_taken(server, authority.pem, alice), "who stands above it needs no list"
        assert not is_taken(server, authority.pem, bob)


class ReturningClient:
    """A client that takes up its TLS session on each new connection."""

    def __init__(self, server: Server, folder: Path, pair: Pair, above: bytes, version: ssl.TLSVersion) -> None:
        self.context = ssl.create_default_context(cadata=server.trusted.decode())
        self.context.maximum_version = version
        self.context.set_alpn_protocols(["h2"])
        certificate = write_at_once(folder / "client.pem", pair.certificate_pem + above)
        self.context.load_cert_chain(certificate, write_at_once(folder / "client.key", pair.key_pem))
        self.address = ("127.0.0.1", server.grpc_port)
        self.session: ssl.SSLSession | None = None
        self.took_up = False  # what it has, on its last connection

    def is_served(self) -> bool:
        """Whether the server begins to speak HTTP/2."""
        with (
            socket.create_connection(self.address, timeout=PATIENCE) as plain,
            self.context.wrap_socket(plain, server_hostname="127.0.0.1", session=self.session) as connection,
        ):
            self.took_up = connection.session_reused
            connection.sendall(http2.BEGINNING)
            try:
                served = connection.recv(9) != b""
            except OSError:
                return False
            if served and not self.took_up:
                self.session = connection.session
            return served


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_resumed_session_is_checked_again(
    repository: Path, tmp_path: Path, authority: Authority, version: ssl.TLSVersion
) -> None:
    """A client shows no certificates above its own then."""
    top = Authority("top")
    middle = Authority("middle", above=top)
    known = write_at_once(tmp_path / "clients.pem", top.pem)
    lists = write_at_once(tmp_path / "revoked.pem", top.revocations() + middle.revocations())
    options = [*files_of(tmp_path, authority.server()), f"--tls-client-ca={known}"]
    short = datetime.timedelta(seconds=4)
    with Server(repository, tmp_path / "open", *options, trusted=authority.pem) as server:
        for signer in (top, middle):
            above = b"" if signer is top else middle.pem
            client = ReturningClient(server, tmp_path, signer.client("alice", end=short), above, version)
            assert client.is_served()
            assert client.is_served() and client.took_up
            wait_until(lambda client=client: not client.is_served())
            assert client.took_up, "it was not the files that changed, but the certificate expired"
    with Server(
        repository, tmp_path / "listed", *options, f"--tls-client-crl={lists}", trusted=authority.pem
    ) as server:
        alice = middle.client("alice")
        client = ReturningClient(server, tmp_path, alice, middle.pem, version)
        assert client.is_served()
        assert client.is_served() and client.took_up
        write_at_once(lists, top.revocations() + middle.revocations(alice))
        wait_until(lambda: not client.is_served())
        write_at_once(lists, top.revocations() + middle.revocations())
        client.session = None
        wait_until(lambda: client.is_served() and client.took_up)  # gRPC reads the files a moment after the server
        write_at_once(lists, top.revocations(Pair(middle.certificate, middle.key)) + middle.revocations())
        wait_until(lambda: not client.is_served())

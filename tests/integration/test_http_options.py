"""The HTTP port's options, and client certificates on it."""

from __future__ import annotations

import datetime
import json
import ssl
from pathlib import Path

import pytest

from integration.certificates import DAY, Authority, Pair, write_at_once
from integration.connect_calls import TOKENIZE, post
from integration.server_process import Server, run, wait_until
from integration.tls_calls import files_of
from integration.tokens import line

REQUEST = {"input": {"text": "x"}}


def test_inference_and_the_page_can_be_left_out(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--http-inference=false") as server:
        assert post(server, TOKENIZE, REQUEST)[0] == 404
        assert "--http-inference" in server.http("/")[1]
        assert post(server, "/", b"", {"Accept": "text/html"}, method="GET")[1]["content-type"].startswith("text/plain")
        assert server.http("/readyz")[0] == 200
        assert "longshort_" in server.http("/metrics")[1]


def test_the_page_alone_can_be_left_out(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--http-page=false") as server:
        assert post(server, TOKENIZE, REQUEST)[0] == 200
        assert post(server, "/", b"", {"Accept": "text/html"}, method="GET")[1]["content-type"].startswith("text/plain")


def test_only_the_given_origin_may_call_from_a_browser(repository: Path, tmp_path: Path, server: Server) -> None:
    origin = {"Origin": "https://app.example.org"}
    assert post(server, TOKENIZE, REQUEST, origin)[0] == 403
    with Server(repository, tmp_path, "--http-cors-origin=https://app.example.org") as opened:
        assert post(opened, TOKENIZE, REQUEST, origin)[1]["access-control-allow-origin"] == origin["Origin"]
        assert post(opened, TOKENIZE, REQUEST, {"Origin": "https://evil"})[0] == 403
        asked = {**origin, "Access-Control-Request-Method": "POST"}
        assert post(opened, TOKENIZE, b"", asked, method="OPTIONS")[0] == 204
        wanted = "authorization, x-stainless-os, traceparent"
        allowed = post(opened, TOKENIZE, b"", {**asked, "Access-Control-Request-Headers": wanted}, method="OPTIONS")[1]
        assert allowed["access-control-allow-headers"] == wanted
        for wrong in ("a;b", "a:b"):
            allowed = post(opened, TOKENIZE, b"", {**asked, "Access-Control-Request-Headers": wrong}, method="OPTIONS")[
                1
            ]
            assert "access-control-allow-headers" not in allowed


def test_balancers_find_what_they_look_for(server: Server) -> None:
    assert server.http("/health") == (200, "ready\n")
    for path in ("/version", "/info"):
        found = json.loads(server.http(path)[1])
        assert found["name"] == "longshort" and found["may_read_metrics"] is True
    body = json.dumps({"model": "tiny", "prompt": "a", "stream": True}).encode()
    head = post(server, "/v1/completions", body)[1]
    assert head["x-accel-buffering"] == "no", "nginx holds nothing back"


@pytest.mark.parametrize("origin", ["example.org", "https://a/b", "https://a b", "https://"])
def test_an_origin_is_checked(repository: Path, origin: str) -> None:
    done = run(f"--model-repository={repository}", f"--http-cors-origin={origin}", "--check-config")
    assert done.returncode != 0
    assert "--http-cors-origin is" in done.stderr


def test_a_loopback_address_serves_the_names_that_it_is_given(repository: Path, tmp_path: Path, server: Server) -> None:
    """Otherwise a page could have its own name mean 127.0.0.1, and call as the server's own page."""

    def status(server: Server, host: str) -> int:
        return post(server, TOKENIZE, REQUEST, {"Host": host})[0]

    assert [status(server, host) for host in ("localhost", "127.0.0.1:1", "example.org")] == [200, 200, 421]
    with Server(repository, tmp_path / "names", "--http-host=one.example,Example.ORG") as named:
        assert [status(named, host) for host in ("example.org:8501", "One.Example", "other.example")] == [200, 200, 421]
    tokens = write_at_once(tmp_path / "tokens", line("any", "token").encode())
    with Server(repository, tmp_path / "tokens-too", f"--token-file={tokens}") as private:
        assert status(private, "example.org") == 401, "a page has no token"
    with Server(repository, tmp_path / "outside", "--http-listen=0.0.0.0:0", "--insecure") as outside:
        assert status(outside, "example.org") == 200


class Clients:
    """Calls with certificates."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder

    def status(self, pair: Pair | None = None, path: str = TOKENIZE, above: bytes = b"") -> int:
        """The HTTP status of a call; 0 if the server does not take the certificate."""
        context = ssl.create_default_context(cadata=self.server.trusted.decode())
        if pair is not None:
            certificate = write_at_once(self.folder / "client.pem", pair.certificate_pem + above)
            context.load_cert_chain(certificate, write_at_once(self.folder / "client.key", pair.key_pem))
        try:
            return post(self.server, path, REQUEST, tls=context, method="POST" if path == TOKENIZE else "GET")[0]
        except (ssl.SSLError, ConnectionError):
            return 0


def test_calls_need_a_client_certificate_and_probes_do_not(
    repository: Path, tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    known = write_at_once(tmp_path / "clients.pem", clients.pem)
    options = [*files_of(tmp_path, authority.server()), f"--tls-client-ca={known}"]
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        client = Clients(server, tmp_path)
        assert client.status(clients.client("alice")) == 200
        assert client.status() == 403, "without a certificate"
        assert client.status(path="/readyz") == 200
        assert client.status(path="/metrics") == 200
        for wrong in (
            Authority("strangers").client("alice"),
            authority.client("alice"),
            clients.client("alice", end=-datetime.timedelta(seconds=1)),
            clients.client("alice", begin=DAY, end=2 * DAY),
            clients.server(),
        ):
            assert client.status(wrong) == 0


def test_certificates_are_identities(
    repository: Path, tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    known = write_at_once(tmp_path / "clients.pem", clients.pem)
    lines = "web spiffe-id=spiffe://example.org/web scopes=infer\nalice certificate-subject=CN=alice scopes=observe\n"
    tokens = write_at_once(tmp_path / "tokens", lines.encode())
    options = [*files_of(tmp_path, authority.server()), f"--tls-client-ca={known}", f"--token-file={tokens}"]
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        client = Clients(server, tmp_path)
        assert client.status(clients.client("any", "spiffe://example.org/web")) == 200
        assert client.status(clients.client("alice")) == 403
        assert client.status(clients.client("bob")) == 401
        assert client.status(clients.client("alice", "spiffe://example.org/other")) == 401
        assert client.status(clients.client("alice", "spiffe://example.org/web", "https://example.org")) == 401
        wait_until(lambda: "identity=web" in server.log())


def test_a_revoked_client_is_refused_as_soon_as_the_list_names_it(
    repository: Path, tmp_path: Path, authority: Authority
) -> None:
    """A list for the authority at the top, too, is not needed: the operator trusts it."""
    middle = Authority("middle", above=Authority("top"))
    alice, bob = middle.client("alice"), middle.client("bob")
    known = write_at_once(tmp_path / "clients.pem", middle.pem)
    lists = write_at_once(tmp_path / "revoked.pem", middle.revocations(bob))
    options = [*files_of(tmp_path, authority.server()), f"--tls-client-ca={known}", f"--tls-client-crl={lists}"]
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        client = Clients(server, tmp_path)
        assert client.status(alice) == 200
        assert client.status(bob) == 0
        write_at_once(lists, middle.revocations(alice))
        wait_until(lambda: client.status(alice) == 0)
        assert client.status(bob) == 200
        write_at_once(lists, middle.revocations(bob) + middle.revocations(alice))
        wait_until(lambda: client.status(bob) == 0)
        assert client.status(alice) == 0, "every list of an authority counts"
        assert client.status(middle.client("carol")) == 200

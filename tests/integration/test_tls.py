"""TLS on the ports of the real server, as clients written elsewhere see it."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from integration.certificates import DAY, Authority, Pair, write_at_once
from integration.server_process import BINARY, Server, account_for_lines, wait_until
from integration.tls_calls import PATIENCE, call, files_of, is_taken


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Starts the server that has no models to compute, and so ends faster where options are wrong."""
    command = [BINARY.with_name("longshort-identity-server"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def served_serial(port: int) -> int:
    """The serial number of the certificate that a new connection is shown."""
    shown = ssl.get_server_certificate(("127.0.0.1", port), timeout=PATIENCE)
    return x509.load_pem_x509_certificate(shown.encode()).serial_number


def openssl_client(port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`openssl s_client`, which lets OpenSSL's own limits fall: what is refused is refused by the server."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-alpn", "h2", *arguments]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PATIENCE,
        check=False,
    )


def answer(connection: socket.socket) -> bytes:
    """The bytes received until the other side closes the connection."""
    received = b""
    try:
        while part := connection.recv(1 << 16):
            received += part
    except ConnectionResetError:
        pass
    return received


def test_both_ports_speak_tls_and_nothing_else(repository: Path, tmp_path: Path, authority: Authority) -> None:
    with Server(repository, tmp_path, *files_of(tmp_path, authority.server()), trusted=authority.pem) as server:
        call(server.channel)
        assert server.http("/readyz") == (200, "ready\n")
        assert server.metric("longshort_tls_certificate_expiry_seconds", file="certificate") == pytest.approx(
            time.time() + DAY.total_seconds(), abs=60
        )
        with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as plain, pytest.raises(grpc.RpcError) as caught:
            call(plain)
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        with socket.create_connection(("127.0.0.1", server.http_port), timeout=PATIENCE) as plain:
            plain.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            refused = answer(plain)
            assert refused.startswith(b"HTTP/1.1 400 ") and b"https://" in refused


def test_the_server_keeps_no_tls_sessions(repository: Path, tmp_path: Path, authority: Authority) -> None:
    """A client of TLS 1.2 that takes no ticket could only go on with a session that the server has kept."""
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET
    context.set_alpn_protocols(["h2", "http/1.1"])

    def connect(port: int, session: ssl.SSLSession | None = None) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        return context.wrap_socket(plain, server_hostname="localhost", session=session)

    with Server(repository, tmp_path, *files_of(tmp_path, authority.server()), trusted=authority.pem) as server:
        for port in (server.grpc_port, server.http_port):
            with connect(port) as first, connect(port, first.session) as second:
                assert not second.session_reused


def test_curl_reads_metrics_and_probes(repository: Path, tmp_path: Path, authority: Authority) -> None:
    trusted = write_at_once(tmp_path / "ca.pem", authority.pem)
    with Server(repository, tmp_path, *files_of(tmp_path, authority.server()), trusted=authority.pem) as server:

        def curl(path: str, *more: str) -> subprocess.CompletedProcess[str]:
            url = f"https://127.0.0.1:{server.http_port}{path}"
            command = ["curl", "--silent", "--show-error", "--fail", "--noproxy", "*", *more, url]
            return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

        assert "longshort_build_info" in curl("/metrics", "--cacert", str(trusted)).stdout
        assert curl("/readyz", "--cacert", str(trusted)).stdout == "ready\n"
        assert curl("/readyz", "--cacert", str(trusted), "--tls-max", "1.2").stdout == "ready\n"
        assert curl("/readyz").returncode == 60, "curl does not know the authority"


@pytest.mark.parametrize("port", ["grpc_port", "http_port"])
def test_tls_1_2_and_1_3_are_spoken_and_1_1_is_not(
    repository: Path, tmp_path: Path, authority: Authority, port: str
) -> None:
    with Server(repository, tmp_path, *files_of(tmp_path, authority.server()), trusted=authority.pem) as server:
        number = getattr(server, port)
        for version, name in (("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")):
            assert f"New, {name}, Cipher is " in openssl_client(number, version).stdout
        for version in ("-tls1_1", "-tls1"):
            old = openssl_client(number, version, "-cipher", "ALL:@SECLEVEL=0")
            assert "Cipher is (NONE)" in old.stdout
            # It was the server that did not want to, by a word (HTTP) or without one (gRPC).
            assert "protocol version" in old.stderr or "unexpected eof" in old.stderr


def test_a_client_that_trusts_others_or_another_name_goes_away(
    repository: Path, tmp_path: Path, authority: Authority
) -> None:
    options = files_of(tmp_path, authority.server("elsewhere.example"))
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        for trusted in (Authority("strangers").pem, authority.pem):
            assert not is_taken(server, trusted)
        options = [("grpc.ssl_target_name_override", "elsewhere.example")]
        with grpc.secure_channel(
            f"127.0.0.1:{server.grpc_port}", grpc.ssl_channel_credentials(authority.pem), options
        ) as channel:
            call(channel)


def wait_for_serial(server: Server, pair: Pair) -> None:
    wait_until(lambda: [served_serial(port) for port in (server.grpc_port, server.http_port)] == [pair.serial] * 2)


def test_a_certificate_is_replaced_under_load(
    api: SimpleNamespace, repository: Path, tmp_path: Path, authority: Authority
) -> None:
    """No call fails, on old connections and on new ones; new ones see the new certificate."""
    first = authority.server()
    with Server(repository, tmp_path, *files_of(tmp_path, first), trusted=authority.pem) as server:
        over = threading.Event()
        calls = [0, 0]

        def ask(channel: grpc.Channel, kind: int) -> None:
            stub = api.inference_grpc.InferenceStub(channel)
            stub.Tokenize(api.inference.TokenizeRequest(input={"text": "x"}), timeout=PATIENCE)
            calls[kind] += 1

        failures: list[Exception] = []

        def until_over(one_call: Callable[[], None]) -> None:
            while not over.is_set() and not failures:
                try:
                    one_call()
                except grpc.RpcError as error:
                    failures.append(error)

        def on_a_new_connection() -> None:
            with server.new_channel() as channel:
                ask(channel, 1)

        threads = [threading.Thread(target=until_over, args=[lambda: ask(server.channel, 0)]) for _ in range(2)]
        threads.append(threading.Thread(target=until_over, args=[on_a_new_connection]))
        for thread in threads:
            thread.start()
        assert served_serial(server.grpc_port) == first.serial
        for _ in range(3):
            pair = authority.server()
            pair.write(tmp_path, "server")
            wait_for_serial(server, pair)
        wait_until(lambda: calls[0] >= 1000 and calls[1] >= 50)
        over.set()
        for thread in threads:
            thread.join()
        assert failures == []
        wait_until(lambda: f'TLS files replaced subject="CN=server" serial={pair.serial:04X}' in server.log())
        assert server.log().count("TLS files replaced") == 3


def test_a_chain_is_replaced(repository: Path, tmp_path: Path, authority: Authority) -> None:
    middle = Authority("middle", above=authority)
    options = files_of(tmp_path, middle.server())
    with Server(repository, tmp_path, *options) as server:
        pair = middle.server()
        certificate, _ = pair.write(tmp_path, "server")
        with certificate.open("ab") as file:
            file.write(middle.pem)
        wait_for_serial(server, pair)
        wait_until(lambda: "BEGIN" in shown_chain(server.grpc_port).partition("END CERTIFICATE")[2])


def shown_chain(port: int) -> str:
    return openssl_client(port, "-showcerts").stdout


def test_wrong_files_leave_the_old_certificate_and_are_reported_once(
    repository: Path, tmp_path: Path, authority: Authority
) -> None:
    first, second = authority.server(), authority.server()
    with Server(repository, tmp_path, *files_of(tmp_path, first), trusted=authority.pem) as server:
        for wrong, part in (
            (b"no certificate\n", "contains no certificate"),
            (second.certificate_pem, "is not the key of the certificate"),
            (authority.server(end=-DAY / 2).certificate_pem, "expired at"),
        ):
            write_at_once(tmp_path / "server.pem", wrong)
            if part == "expired at":
                (tmp_path / "server.key").unlink()
                part = "cannot be read"
            wait_until(lambda part=part: part in server.log())
            assert [served_serial(port) for port in (server.grpc_port, server.http_port)] == [first.serial] * 2
            call(server.channel)
        assert server.log().count("the new TLS files are invalid") == 3, "each once"
        second.write(tmp_path, "server")
        wait_for_serial(server, second)
        assert server.log().count("the new TLS files are invalid") == 3


def test_a_client_without_handshake_is_disconnected(repository: Path, tmp_path: Path, authority: Authority) -> None:
    with Server(repository, tmp_path, *files_of(tmp_path, authority.server()), trusted=authority.pem) as server:
        call(server.channel)
        address = ("127.0.0.1", server.grpc_port)
        silent = [socket.create_connection(address, timeout=PATIENCE) for _ in range(50)]
        silent[0].sendall(b"\x16\x03\x01")  # the beginning of a hello
        for connection in silent:
            assert connection.recv(1) == b""
            connection.close()

        def connect_without_tls() -> None:
            with socket.create_connection(address, timeout=PATIENCE) as plain:
                plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
                assert plain.recv(1) == b""

        account_for_lines(server.log, "client refused", len(silent), connect_without_tls)
        assert server.log().count("client refused") < len(silent) / 2
        assert "Z error " not in server.log()


def test_errors_in_files_are_reported_at_the_start(
    repository: Path, tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    right, other = authority.server(), authority.server()
    certificate, key = right.write(tmp_path, "right")
    other_certificate, _ = other.write(tmp_path, "other")
    expired, expired_key = authority.server(end=-DAY / 2).write(tmp_path, "expired")
    future, future_key = authority.server(begin=DAY, end=2 * DAY).write(tmp_path, "future")
    of_client, of_client_key = authority.client("alice").write(tmp_path, "client")
    open_key = write_at_once(tmp_path / "open.key", right.key_pem, mode=0o644)
    text = write_at_once(tmp_path / "text", b"hello\n")
    binary = write_at_once(tmp_path / "binary", right.certificate.public_bytes(serialization.Encoding.DER))
    locked_pem = right.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    )
    locked = write_at_once(tmp_path / "locked.key", locked_pem)
    weak, weak_key = tmp_path / "weak.pem", tmp_path / "weak.key"
    make_weak = ["openssl", "req", "-x509", "-newkey", "rsa:1024", "-noenc", "-subj", "/CN=weak"]
    subprocess.run([*make_weak, "-keyout", weak_key, "-out", weak], capture_output=True, check=True)
    known = write_at_once(tmp_path / "clients.pem", clients.pem)
    mixed = write_at_once(tmp_path / "mixed.pem", clients.pem + certificate.read_bytes())
    late = write_at_once(tmp_path / "late.crl", clients.revocations(end=-DAY / 2))
    strange = write_at_once(tmp_path / "strange.crl", authority.revocations())
    mutual = {"client-ca": known}
    for files, *parts in (
        ({"certificate": tmp_path / "none"}, "none", "No such file"),
        ({"certificate": tmp_path}, str(tmp_path), "cannot be read"),
        ({"certificate": text}, str(text), "contains no certificate in PEM format"),
        ({"certificate": binary}, str(binary), "contains no certificate in PEM format"),
        ({"certificate": expired, "key": expired_key}, str(expired), "CN=server", "expired at"),
        ({"certificate": future, "key": future_key}, str(future), "is not valid before"),
        ({"certificate": of_client, "key": of_client_key}, str(of_client), "does not allow a server"),
        (
            {"certificate": other_certificate},
            f"--tls-key={key}",
            "is not the key",
            f"--tls-certificate={other_certificate}",
        ),
        ({"certificate": weak, "key": weak_key}, str(weak), "ee key too small"),
        ({"key": tmp_path / "none"}, "--tls-key", "No such file"),
        ({"key": text}, f"--tls-key={text}", "no private key"),
        ({"key": locked}, f"--tls-key={locked}", "passphrase"),
        ({"key": open_key}, f"--tls-key={open_key}", "chmod o="),
        ({"key": None}, "--tls-certificate needs --tls-key"),
        ({"certificate": None}, "--tls-key needs --tls-certificate"),
        ({"certificate": None, "key": None, **mutual}, "--tls-client-ca needs --tls-certificate and --tls-key"),
        ({"client-crl": late}, "--tls-client-crl needs --tls-client-ca"),
        ({"client-ca": certificate}, str(certificate), "is not a CA certificate"),
        ({"client-ca": mixed}, str(mixed), "is not a CA certificate"),
        ({"client-crl": late, **mutual}, str(late), "a list that expired at"),
        ({"client-crl": strange, **mutual}, str(strange), "no list signed by CN=clients"),
        ({"client-crl": known, **mutual}, str(known), "contains no revocation list"),
    ):
        asked = {"certificate": certificate, "key": key} | files
        options = [f"--tls-{name}={path}" for name, path in asked.items() if path is not None]
        ended = run(f"--model-repository={repository}", *options)
        assert ended.returncode == 1, (files, ended.stderr)
        for part in parts:
            assert part in ended.stderr, files


@pytest.mark.parametrize("option", ["listen", "http-listen"])
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "[::ffff:0.0.0.0]", "192.0.2.1"])
def test_beyond_loopback_without_tls_is_refused(
    repository: Path, tmp_path: Path, authority: Authority, option: str, host: str
) -> None:
    arguments = [f"--model-repository={repository}", f"--{option}={host}:0", "--check-config"]
    ended = run(*arguments)
    assert ended.returncode == 1
    for part in (f"--{option}={host}:0", "--tls-certificate", "--insecure"):
        assert part in ended.stderr
    assert run(*arguments, "--insecure").returncode == 0
    encrypted = files_of(tmp_path, authority.server())
    assert run(*arguments, *encrypted).returncode == 0
    both = run(*arguments, "--insecure", *encrypted)
    assert both.returncode == 1 and "--insecure serves without TLS" in both.stderr


def test_names_are_resolved(repository: Path) -> None:
    for host, code, part in (("localhost", 0, ""), ("no-such-host.invalid", 1, "does not resolve")):
        ended = run(f"--model-repository={repository}", f"--listen={host}:0", "--check-config")
        assert ended.returncode == code and part in ended.stderr
    beyond = socket.gethostname()
    if not socket.gethostbyname(beyond).startswith("127."):
        ended = run(f"--model-repository={repository}", f"--listen={beyond}:0", "--check-config")
        assert ended.returncode == 1 and "--insecure" in ended.stderr

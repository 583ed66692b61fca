"""Why a client does not come to a server: gRPC says too little of it ("Socket closed")."""

from __future__ import annotations

import os
import re
import socket
import ssl

from longshort.connection import Connection

_PATIENCE = 3.0  # seconds for each step


def diagnose(connection: Connection) -> str:
    """Connects to each server as a client would, and says what does not work: nobody listens, one side alone speaks
    TLS, the authority or the name of a certificate is another, it has expired, the server wants or refuses a
    client's. A sentence; empty if a connection works, or nothing is known (addresses that are not host:port). Takes
    some seconds at the most."""
    found = ""
    for server in connection.servers[:3]:
        cause = _diagnose_one(connection, server)
        if not cause:
            return ""
        found = found or cause
    return found


def _address(server: str) -> tuple[str, int] | None:
    found = re.fullmatch(r"(?:dns:(?:///)?)?(?:\[([0-9a-fA-F:.]+)\]|([^:/\[\]]+)):(\d+)", server)
    return (found[1] or found[2], int(found[3])) if found else None


def _diagnose_one(connection: Connection, server: str) -> str:
    address = _address(server)
    if address is None:
        return ""
    host, port = address
    try:
        opened = socket.create_connection(address, _PATIENCE)
    except socket.gaierror as error:
        return f"no address is known of {host}: {error.strerror}"
    except OSError as error:
        why = "no answer in time" if isinstance(error, TimeoutError) else error.strerror
        return f"nobody answers at {host} on port {port}: {why}"
    with opened:
        opened.settimeout(_PATIENCE)
        if connection.encrypted:
            return _look_at_handshake(connection, opened, host)
    return _speaks_tls(address)


def _speaks_tls(address: tuple[str, int]) -> str:
    anything = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anything.check_hostname = False
    anything.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection(address, _PATIENCE) as opened, anything.wrap_socket(opened):
            pass
    except ssl.SSLError as error:
        if "ALERT" not in (error.reason or ""):
            return ""
    except OSError:
        return ""
    return "the server speaks TLS: give tls_ca with its authority, or tls if this system trusts that"


def _context(connection: Connection) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=connection.tls_ca)
    context.set_alpn_protocols(["h2"])
    if connection.tls_certificate is not None:
        context.load_cert_chain(connection.tls_certificate, connection.tls_key)
    return context


def _look_at_handshake(connection: Connection, opened: socket.socket, host: str) -> str:
    name = connection.tls_server_name or host
    try:
        context = _context(connection)
    except (ssl.SSLError, OSError) as error:
        return f"the TLS files cannot be used: {error}"
    try:
        with context.wrap_socket(opened, server_hostname=name) as spoken:
            # A server begins with its settings. What it thinks of the client's certificate comes in their place.
            return "" if spoken.recv(1) else _about_own_certificate(connection, "")
    except ssl.SSLCertVerificationError as error:
        return _about_server_certificate(connection, error, name)
    except ssl.SSLEOFError:
        return "the server ended the connection during TLS's handshake; perhaps it speaks no TLS there"
    except ssl.SSLError as error:
        reason = error.reason or ""
        if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason or "ACCESS_DENIED" in reason):
            return _about_own_certificate(connection, reason)
        if "ALERT" in reason:
            return f"the server refused TLS's handshake: {reason}"
        return f"the server speaks no TLS there ({reason}): leave out tls and tls_... if that is right"
    except TimeoutError:
        return "the server did not answer TLS's handshake in time; perhaps it speaks no TLS there"
    except OSError:
        return _about_own_certificate(connection, "")


def _about_own_certificate(connection: Connection, reason: str) -> str:
    if connection.tls_certificate is None:
        return "the server wants to see a certificate of the client: give tls_certificate and tls_key"
    why = f" ({reason})" if reason else ""
    return (
        "the server has ended the connection after it was shown"
        f" tls_certificate={os.fspath(connection.tls_certificate)}{why}: its authority may be none that the"
        " server knows, or it was revoked"
    )


# X509_V_ERR_...
_NOT_YET_VALID, _EXPIRED, _HOST, _ADDRESS = 9, 10, 62, 64
_UNKNOWN_AUTHORITY = (2, 7, 18, 19, 20, 21)


def _about_server_certificate(connection: Connection, error: ssl.SSLCertVerificationError, name: str) -> str:
    if error.verify_code in (_HOST, _ADDRESS):
        return f"the server's certificate is not for {name}: server or tls_server_name must be a name in it"
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        state = "has expired" if error.verify_code == _EXPIRED else "is not valid yet"
        return f"the server's certificate or one above it {state}"
    if error.verify_code in _UNKNOWN_AUTHORITY:
        if connection.tls_ca is None:
            return "the server's certificate was signed by no authority that this system trusts: give tls_ca"
        return f"the server's certificate was signed by no authority of tls_ca={os.fspath(connection.tls_ca)}"
    return f"the server's certificate is not trusted: {error.verify_message}"


def proxy_hint(message: str) -> str:
    """That gRPC asks a proxy, if it does and could not connect."""
    if "failed to connect" in message or "DNS" in message:
        for proxy in ("grpc_proxy", "https_proxy", "http_proxy"):
            if os.environ.get(proxy):
                return f"{proxy} is set: gRPC connects through this proxy, except to the hosts in no_proxy"
    return ""

"""Diagnoses failed connections, for which gRPC only reports "Socket closed"."""

from __future__ import annotations

import os
import re
import socket
import ssl

from longshort.connection import Connection

_STEP_TIMEOUT = 3.0  # seconds


def diagnose(connection: Connection) -> str:
    """Connects to each server like a client and explains what fails: the port is closed, only one side uses TLS, the
    certificate has another CA or name or has expired, the server requires or rejects a client certificate. Returns one
    sentence; empty if a connection works or the cause is unknown (addresses other than host:port). Takes a few
    seconds at most."""
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
        opened = socket.create_connection(address, _STEP_TIMEOUT)
    except socket.gaierror as error:
        return f"cannot resolve the host name {host}: {error.strerror}"
    except OSError as error:
        why = "timed out" if isinstance(error, TimeoutError) else error.strerror
        return f"cannot connect to {host} on port {port}: {why}"
    with opened:
        opened.settimeout(_STEP_TIMEOUT)
        if connection.encrypted:
            return _look_at_handshake(connection, opened, address)
    return _speaks_tls(address) or _speaks_http1(address)


def _speaks_tls(address: tuple[str, int]) -> str:
    anything = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anything.check_hostname = False
    anything.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection(address, _STEP_TIMEOUT) as opened, anything.wrap_socket(opened):
            pass
    except ssl.SSLError as error:
        if "ALERT" not in (error.reason or ""):
            return ""
    except OSError:
        return ""
    return "the server uses TLS: give tls_ca with its CA, or tls if this system trusts that CA"


def _speaks_http1(address: tuple[str, int]) -> str:
    """Sends the beginning of HTTP/2."""
    try:
        with socket.create_connection(address, _STEP_TIMEOUT) as opened:
            opened.settimeout(_STEP_TIMEOUT)
            opened.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            if not opened.recv(7).startswith(b"HTTP/1."):
                return ""
    except OSError:
        return ""
    return _about_http_port(address[1])


def _about_http_port(port: int) -> str:
    return (
        f"port {port} speaks HTTP/1.1, as a server's HTTP port does: give the port of gRPC (--listen), by default 8500"
    )


def _context(connection: Connection) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=connection.tls_ca)
    context.set_alpn_protocols(["h2"])
    if connection.tls_certificate is not None:
        context.load_cert_chain(connection.tls_certificate, connection.tls_key)
    return context


def _look_at_handshake(connection: Connection, opened: socket.socket, address: tuple[str, int]) -> str:
    host, port = address
    name = connection.tls_server_name or host
    try:
        context = _context(connection)
    except (ssl.SSLError, OSError) as error:
        return f"the TLS files cannot be used: {error}"
    try:
        with context.wrap_socket(opened, server_hostname=name) as spoken:
            if spoken.selected_alpn_protocol() != "h2":
                return _about_http_port(port)
            # A server sends its HTTP/2 settings first. If it rejects the client certificate, it sends an alert instead.
            return "" if spoken.recv(1) else _about_own_certificate(connection, "")
    except ssl.SSLCertVerificationError as error:
        return _about_server_certificate(connection, error, name)
    except ssl.SSLEOFError:
        return "the server closed the connection during the TLS handshake; perhaps it does not use TLS on this port"
    except ssl.SSLError as error:
        # Python 3.11 has no name for some alerts, only OpenSSL's text.
        reason = error.reason or str(error).upper().replace(" ", "_")
        if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason or "ACCESS_DENIED" in reason):
            return _about_own_certificate(connection, reason)
        if "NO_APPLICATION_PROTOCOL" in reason:
            return _about_http_port(port)
        if "ALERT" in reason:
            return f"the server refused the TLS handshake: {reason}"
        return f"the server does not use TLS on this port ({reason}): if that is intended, omit tls and tls_..."
    except TimeoutError:
        return "the TLS handshake timed out; perhaps the server does not use TLS on this port"
    except OSError:
        return _about_own_certificate(connection, "")


def _about_own_certificate(connection: Connection, reason: str) -> str:
    if connection.tls_certificate is None:
        return "the server requires a client certificate: give tls_certificate and tls_key"
    why = f" ({reason})" if reason else ""
    return (
        "the server closed the connection after it received"
        f" tls_certificate={os.fspath(connection.tls_certificate)}{why}: the server may not trust its CA, or the"
        " certificate was revoked"
    )


# X509_V_ERR_...
_NOT_YET_VALID, _EXPIRED, _HOST, _ADDRESS = 9, 10, 62, 64
_UNKNOWN_AUTHORITY = (2, 7, 18, 19, 20, 21)


def _about_server_certificate(connection: Connection, error: ssl.SSLCertVerificationError, name: str) -> str:
    if error.verify_code in (_HOST, _ADDRESS):
        return f"the server's certificate is not for {name}: server or tls_server_name must be a name in it"
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        state = "has expired" if error.verify_code == _EXPIRED else "is not valid yet"
        return f"the server's certificate or a certificate above it {state}"
    if error.verify_code in _UNKNOWN_AUTHORITY:
        if connection.tls_ca is None:
            return "the server's certificate was not signed by a CA that this system trusts: give tls_ca"
        return f"the server's certificate was not signed by a CA of tls_ca={os.fspath(connection.tls_ca)}"
    return f"the server's certificate is not trusted: {error.verify_message}"


def proxy_hint(connection: Connection) -> str:
    """Names the proxy that gRPC uses, if any, after a failed connection."""
    if not connection.may_use_proxy or all(server.startswith("unix:") for server in connection.servers):
        return ""
    # gRPC reads the first that is set; an empty one means no proxy.
    for proxy in ("grpc_proxy", "https_proxy", "http_proxy"):
        if (value := os.environ.get(proxy)) is not None:
            hint = f"{proxy} is set: gRPC connects through this proxy, except to the hosts in no_proxy"
            return hint if value else ""
    return ""

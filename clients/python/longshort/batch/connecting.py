"""How callers say where servers are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypedDict

from longshort.connection import Connection, Paths, split_servers


class ConnectionOptions(TypedDict, total=False):
    """Where servers are, as of longshort.Client. Names with several addresses stand for a server each."""

    server: str | Sequence[str]
    tls: bool
    tls_ca: Paths
    tls_certificate: Paths
    tls_key: Paths
    tls_server_name: str
    token: str
    token_file: Paths
    insecure: bool
    health_check: bool


def connection_of(options: ConnectionOptions) -> Connection:
    """Raises ValueError for what cannot be used."""
    servers = split_servers(options.get("server", "127.0.0.1:8500"))
    for server in servers:
        _check_port(server)
    return Connection(
        servers=servers,
        tls=options.get("tls", False),
        tls_ca=options.get("tls_ca"),
        tls_certificate=options.get("tls_certificate"),
        tls_key=options.get("tls_key"),
        tls_server_name=options.get("tls_server_name", ""),
        token=options.get("token", ""),
        token_file=options.get("token_file"),
        insecure=options.get("insecure", False),
        health_check=options.get("health_check", True),
    )


def _check_port(server: str) -> None:
    """Of an address without one gRPC asks port 443, and nobody would say that nothing is there."""
    if "/" in server or server.startswith(("unix:", "ipv4:", "ipv6:", "dns:")):
        return
    found = re.fullmatch(r"(?:\[[^]]+\]|[^:]+):(\d{1,5})", server)
    if found is None or not 0 < int(found[1]) < 65536:
        raise ValueError(f"the server {server} has no port: give HOST:PORT, with a port from 1 to 65535")

"""How callers say where servers are."""

from __future__ import annotations

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
    return Connection(
        servers=split_servers(options.get("server", "127.0.0.1:8500")),
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

"""The options that name servers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypedDict

from longshort.connection import Connection, Paths, split_servers


class ConnectionOptions(TypedDict, total=False):
    """As of longshort.Client. Each address of a host name is a server."""

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
    """Ignores other keys of `options`. Raises ValueError for invalid values."""
    more: Any = {name: value for name, value in options.items() if name in ConnectionOptions.__optional_keys__}
    servers = split_servers(more.pop("server", "127.0.0.1:8500"))
    for server in servers:
        _check_port(server)
    return Connection(servers=servers, **more)


def _check_port(server: str) -> None:
    """Raises ValueError for an address without a port: gRPC would connect to port 443, and report no error."""
    if "/" in server or server.startswith(("unix:", "ipv4:", "ipv6:", "dns:")):
        return
    found = re.fullmatch(r"(?:\[[^]]+\]|[^:]+):(\d{1,5})", server)
    if found is None or not 0 < int(found[1]) < 65536:
        raise ValueError(f"the server {server} has no port: give HOST:PORT, with a port from 1 to 65535")

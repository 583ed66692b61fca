"""The servers that options name: their addresses, and the connection to each."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ipaddress
import socket
from typing import Any

from longshort.batch.run.options import ConnectionOptions
from longshort.connection import SCHEMES, Connection, split_servers


def connection_of(options: ConnectionOptions) -> Connection:
    """Ignores other keys of `options`. Raises ValueError for invalid values."""
    more: Any = {name: value for name, value in options.items() if name in ConnectionOptions.__optional_keys__}
    return Connection(servers=split_servers(more.pop("server", "127.0.0.1:8500")), **more)


async def servers_of(connection: Connection) -> list[Connection]:
    """A connection for each server. Each address of a DNS name (say, of a headless Kubernetes service) is a server.
    A name that cannot be resolved now is one server."""
    found: dict[str, Connection] = {}
    for server in connection.servers:
        host, _, port = server.rpartition(":")
        addresses = [] if _is_single_address(server, host) else await _resolve(host, port)
        if len(addresses) < 2:
            found[server] = dataclasses.replace(connection, servers=(server,))
            continue
        name = connection.tls_server_name or (host if connection.encrypted else "")
        for address in addresses:
            found[address] = dataclasses.replace(connection, servers=(address,), tls_server_name=name)
    return list(found.values())


def _is_single_address(server: str, host: str) -> bool:
    if server.startswith(SCHEMES) or "/" in server or host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host.strip("[]"))
        return True
    return False


async def _resolve(host: str, port: str) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    hosts = sorted({(family == socket.AF_INET6, address[0]) for family, _, _, _, address in found})
    return [f"[{address}]:{port}" if is_v6 else f"{address}:{port}" for is_v6, address in hosts]

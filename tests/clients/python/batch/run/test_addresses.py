"""Each address of a DNS name is a server."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import Any

import pytest
from longshort._proto import inference_pb2
from longshort.batch.run.addresses import connection_of, servers_of
from longshort.batch.run.scorer import Scorer
from longshort.connection import Connection

FOUND = {
    "models.example.org": ["10.0.0.2", "10.0.0.1", "fd00::1"],
    "one.example.org": ["10.0.0.9"],
}


def look_up(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    async def getaddrinfo(_: Any, host: str, port: str, **more: Any) -> list[Any]:
        if host not in FOUND:
            raise socket.gaierror(f"{host} is unknown")
        # Each address comes twice, as of several protocols.
        family = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in FOUND[host]]
        return [(kind, 1, 6, "", (one, int(port))) for kind, one in zip(family, FOUND[host], strict=True)] * 2

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return asyncio.run(servers_of(connection))


def test_each_address_of_a_name_is_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("models.example.org:8500", "one.example.org:1", "10.1.1.1:2", "[::1]:3", "localhost:4", "gone:5", "unix:x")
    found = look_up(Connection(servers=given), monkeypatch)
    assert [one.servers[0] for one in found] == [
        *("10.0.0.1:8500", "10.0.0.2:8500", "[fd00::1]:8500"),
        *given[1:],
    ]


@pytest.mark.parametrize(
    "server", ["127.0.0.1", "models.example.org", "[::1]", "::1", "a:http", "a:0", "a:65536", "a:"]
)
def test_an_address_without_a_port_is_refused(server: str) -> None:
    with pytest.raises(ValueError, match=f"server {re.escape(server)} is not HOST:PORT with a port"):
        connection_of({"server": ["a:1", server]})


@pytest.mark.parametrize("server", ["127.0.0.1:1", "[::1]:1", "unix:x", "dns:///a", "ipv4:10.0.0.1:1,10.0.0.2:1"])
def test_grpcs_own_addresses_are_taken(server: str) -> None:
    assert connection_of({"server": server}).servers == (server,)


@pytest.mark.parametrize("wrong", [{"patience": -1.0}, {"patience": float("nan")}, {"timeout": 0.0}])
def test_times_that_are_none_are_refused(wrong: dict[str, float]) -> None:
    async def make() -> None:
        Scorer({"server": "a:1", **wrong}, inference_pb2.ScoreTextsOptions())

    with pytest.raises(ValueError, match="it must be"):
        asyncio.run(make())


def test_certificates_are_those_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = look_up(Connection(servers=("models.example.org:1", "one.example.org:1"), tls=True), monkeypatch)
    assert {one.tls_server_name for one in found[:3]} == {"models.example.org"}
    assert found[3].tls_server_name == ""
    named = look_up(Connection(servers=("models.example.org:1",), tls_server_name="other"), monkeypatch)
    assert {one.tls_server_name for one in named} == {"other"}

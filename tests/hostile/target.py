"""The server under attack, connections to it whose every byte the client chooses, and the program around an attack."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import json
import os
import re
import resource
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from integration import http2
from integration.http2 import frame

STREAM_WINDOW = 4
ESTABLISHED = b"\x01"  # a state of TCP_INFO
LARGEST_WINDOW = (1 << 31) - 1
LARGEST_FRAME = 16_384


@cache
def trusting_context(protocol: str) -> ssl.SSLContext:
    """For clients that take any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    return context


class Connection:
    """Reads nothing by itself beyond some kilobytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def hold(self) -> None:
        """Reads nothing until the server closes the connection."""
        open_socket = self._writer.get_extra_info("socket")  # a TLS writer forgets it when the connection ends
        while open_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == ESTABLISHED:
            await asyncio.sleep(0.5)

    async def answer(self) -> int:
        """The status of the next answer by HTTP, which is read to its end."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        if length := re.search(rb"\r\ncontent-length: (\d+)", head, re.IGNORECASE):
            left = int(length[1])
            while left > 0:
                left -= await self._some(min(left, 1 << 18))
        elif re.search(rb"\r\ntransfer-encoding: chunked", head, re.IGNORECASE):
            while size := int(await self.reader.readline(), 16):
                await self.reader.readexactly(size + 2)
            await self.reader.readline()
        return int(head.split(b" ", 2)[1])

    async def _some(self, most: int) -> int:
        if some := await self.reader.read(most):
            return len(some)
        raise EOFError


@dataclass
class Target:
    """A server on loopback, and as which client to call it: from this address, with this token."""

    host: str
    grpc_port: int
    http_port: int
    token: str = ""
    source: str = ""
    tls: bool = False
    # How often each thing happened: answers by status, connections that the server closed.
    seen: Counter[str] = field(default_factory=Counter)
    # If thousands shook hands at once, none would finish within the time.
    connecting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(32))

    @asynccontextmanager
    async def connect(
        self, port: int, protocol: str = "http/1.1", tls: bool | None = None
    ) -> AsyncIterator[Connection]:
        """A connection with small buffers, so that what the client does not read stays with the server. `tls`: whether
        to speak it, if this is not as with the other connections."""
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        raw.setblocking(False)
        if self.source:
            raw.setsockopt(socket.IPPROTO_IP, socket.IP_BIND_ADDRESS_NO_PORT, 1)
            raw.bind((self.source, 0))
        context = trusting_context(protocol) if (self.tls if tls is None else tls) else None
        try:
            async with self.connecting:
                await asyncio.get_running_loop().sock_connect(raw, (self.host, port))
                reader, writer = await asyncio.open_connection(
                    sock=raw, ssl=context, server_hostname=self.host if context else None, limit=16 << 10
                )
        except BaseException:
            raw.close()
            raise
        self.seen["connections"] += 1
        try:
            yield Connection(reader, writer)
        finally:
            writer.transport.abort()

    def by_http(self) -> AbstractAsyncContextManager[Connection]:
        return self.connect(self.http_port)

    async def ask_for_ever(self, request: bytes) -> None:
        """Sends a request again after each answer, on one connection."""
        async with self.by_http() as connection:
            while True:
                await connection.send(request)
                self.seen[f"status {await connection.answer()}"] += 1

    @asynccontextmanager
    async def by_grpc(self, reads: bool = True, window: int | None = None) -> AsyncIterator[Calls]:
        """`reads`: gives the server credit for all answers; otherwise for none beyond the first 64 KiB, or `window`
        for each call."""
        async with self.connect(self.grpc_port, "h2") as connection:
            calls = Calls(self, connection)
            await calls.start(LARGEST_WINDOW if reads else window, reads)
            yield calls

    def request(self, path: str, body: bytes, kind: str = "application/json", **fields: object) -> bytes:
        """A whole POST; `_` stands for `-` in the names of fields. A field that is None is left out."""
        lines = [f"POST {path} HTTP/1.1", f"Host: {self.host}", f"Content-Type: {kind}"]
        fields = {"Content_Length": len(body), **fields}
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items() if value is not None]
        if self.token:
            lines.append(f"Authorization: Bearer {self.token}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def call_headers(self, method: str, **fields: str) -> bytes:
        """The header fields of a call by gRPC."""
        if self.token:
            fields = {"authorization": f"Bearer {self.token}", **fields}
        return http2.call_headers(method, **fields)


# What one client does on its own, until it ends. It is started again then.
Client = Callable[[Target], Awaitable[None]]


class Calls:
    """A connection of gRPC. It follows the server's flow control: the server closes connections that do not."""

    def __init__(self, target: Target, connection: Connection) -> None:
        self._target, self._connection = target, connection
        self._credit, self._stream_window = 65_535, 65_535
        self._credits: dict[int, int] = {}  # by open call
        self._next, self.ended = 1, False
        self._changed = asyncio.Event()

    async def start(self, window: int | None, reads: bool) -> None:
        """Sends the connection's beginning, and answers pings and settings until the connection ends."""
        settings = b"" if window is None else struct.pack(">HI", STREAM_WINDOW, window)
        await self.send(http2.BEGINNING[: -http2.FRAME_HEADER_BYTES] + frame(http2.SETTINGS, 0, 0, settings))
        if reads:
            await self.give(0, LARGEST_WINDOW - 65_535)
        self._receiver = asyncio.create_task(self._receive())

    async def send(self, frames: bytes) -> None:
        await self._connection.send(frames)

    async def give(self, stream: int, credit: int) -> None:
        """Lets the server send so many bytes more."""
        await self.send(frame(http2.WINDOW_UPDATE, 0, stream, struct.pack(">I", credit)))

    @property
    def open(self) -> int:
        return len(self._credits)

    async def begin(self, headers: bytes, message: bytes | None = b"", packed: bool = False, ends: bool = True) -> int:
        """Starts a call with a message, unless it is None; `packed`: it is compressed. Returns the call's stream."""
        stream = self._next
        self._next += 2
        self._credits[stream] = self._stream_window
        await self.send(frame(http2.HEADERS, http2.END_HEADERS, stream, headers))
        if message is not None:
            await self.message(stream, message, packed, ends)
        return stream

    async def message(self, stream: int, message: bytes, packed: bool = False, ends: bool = False) -> None:
        await self.data(stream, struct.pack(">BI", packed, len(message)) + message, ends)

    async def data(self, stream: int, data: bytes, ends: bool = False) -> None:
        """Bytes of messages."""
        at = 0
        while at < len(data):
            await self.until(lambda: stream not in self._credits or min(self._credit, self._credits[stream]) > 0)
            if stream not in self._credits:
                return  # the server has ended the call
            size = min(self._credit, self._credits[stream], LARGEST_FRAME, len(data) - at)
            self._credit -= size
            self._credits[stream] -= size
            flags = http2.END_STREAM if ends and at + size == len(data) else 0
            await self.send(frame(http2.DATA, flags, stream, data[at : at + size]))
            at += size

    async def reset(self, stream: int) -> None:
        self._credits.pop(stream, None)
        await self.send(frame(http2.RESET, 0, stream, struct.pack(">I", 8)))

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            if self.ended:
                raise EOFError("the server has closed the connection")
            self._changed.clear()
            await self._changed.wait()

    async def _receive(self) -> None:
        try:
            while True:
                await self._take(await self._connection.reader.readexactly(http2.FRAME_HEADER_BYTES))
        except (OSError, EOFError):
            self.ended = True
            self._changed.set()

    async def _take(self, head: bytes) -> None:
        length, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
        payload = await self._connection.reader.readexactly(length)
        if kind == http2.SETTINGS and not flags & http2.ACKNOWLEDGED:
            for at in range(0, length, 6):
                name, value = struct.unpack_from(">HI", payload, at)
                if name == STREAM_WINDOW:
                    self._credits = {one: left + value - self._stream_window for one, left in self._credits.items()}
                    self._stream_window = value
            await self.send(frame(http2.SETTINGS, http2.ACKNOWLEDGED, 0, b""))
        elif kind == http2.PING and not flags & http2.ACKNOWLEDGED:
            await self.send(frame(http2.PING, http2.ACKNOWLEDGED, 0, payload))
        elif kind == http2.WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream == 0:
                self._credit += more
            elif stream in self._credits:
                self._credits[stream] += more
        elif kind == http2.RESET or (kind in (http2.DATA, http2.HEADERS) and flags & http2.END_STREAM):
            self._credits.pop(stream, None)
            self._target.seen["calls answered"] += 1
        self._changed.set()


async def storm(target: Target, clients: Mapping[str, tuple[int, Client]], seconds: float) -> None:
    """Runs so many of each client side by side. A client that has ended, or whose connection the server has closed,
    begins again a moment later."""

    async def go_on(client: Client) -> None:
        while True:
            try:
                await client(target)
            except (OSError, EOFError, ValueError) as error:
                target.seen[type(error).__name__] += 1
            await asyncio.sleep(0.05)

    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for count, client in clients.values():
                for _ in range(count):
                    group.create_task(go_on(client))


def parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments that name a target."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--grpc", required=True, metavar="HOST:PORT", help="loopback only")
    arguments.add_argument("--http", required=True, metavar="HOST:PORT", help="loopback only")
    arguments.add_argument("--token-file", type=Path, metavar="FILE", help="holds the bearer token to show")
    arguments.add_argument("--source", default="", metavar="ADDRESS", help="call from this address of loopback")
    arguments.add_argument("--tls", action="store_true", help="trusts any certificate")
    arguments.add_argument("--seconds", type=float, default=30)
    return arguments


def target_of(given: argparse.Namespace) -> Target:
    """Refuses every address that is not of this machine."""
    (host, grpc_port), (other, http_port) = (address.rsplit(":", 1) for address in (given.grpc, given.http))
    for address in (host, other):
        if not ipaddress.ip_address(address).is_loopback:
            raise SystemExit(f"{address} is not a loopback address: attack only servers of this machine")
    token = given.token_file.read_text().strip() if given.token_file else ""
    return Target(host, int(grpc_port), int(http_port), token, given.source, given.tls)


def main(description: str | None, clients: Mapping[str, tuple[int, Client]]) -> None:
    """The program of an attack. Runs behind all others, so that the server has the processors; prints what it saw."""
    arguments = parser(description)
    arguments.add_argument("--only", action="append", choices=clients, help="this kind of client; may be repeated")
    given = arguments.parse_args()
    target = target_of(given)
    os.nice(10)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    chosen = {name: client for name, client in clients.items() if given.only is None or name in given.only}
    asyncio.run(storm(target, chosen, given.seconds))
    print(json.dumps({**target.seen, "cpu seconds": round(time.process_time(), 1)}))

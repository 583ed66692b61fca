"""A load balancer that forwards connections, and forgets one on which nothing has moved for a time."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import Self

_READ_BYTES = 64 << 10
_LOOK_SECONDS = 0.05


class IdleBalancer:
    """Stands before a server of this machine. `resets`: it resets a connection that it forgets; otherwise both sides
    keep their ends, and what they send is lost. Use as a context manager."""

    def __init__(self, server_port: int, idle_seconds: float, resets: bool) -> None:
        self._server_port = server_port
        self._idle_seconds = idle_seconds
        self._resets = resets
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._opened: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for one in self._opened:
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._opened += [client, server]
                _Forwarding(client, server, self._idle_seconds, self._resets).start()


class _Forwarding:
    def __init__(self, client: socket.socket, server: socket.socket, idle_seconds: float, resets: bool) -> None:
        self._ends = (client, server)
        self._idle_seconds = idle_seconds
        self._resets = resets
        self._moved = time.monotonic()

    def start(self) -> None:
        for one, other in (self._ends, self._ends[::-1]):
            one.settimeout(_LOOK_SECONDS)
            threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while time.monotonic() - self._moved < self._idle_seconds:
                with contextlib.suppress(TimeoutError):
                    content = one.recv(_READ_BYTES)
                    self._moved = time.monotonic()
                    other.sendall(content)
                    if not content:
                        break
            else:
                if not self._resets:
                    return
        for end in self._ends:
            with contextlib.suppress(OSError):
                if self._resets:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.close()

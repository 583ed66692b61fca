"""Connections to servers: addresses, TLS, tokens, channels."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import string
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import grpc

from longshort.option_files import read_option_file
from longshort.version import __version__

C = TypeVar("C")
Paths = str | os.PathLike[str] | None

# The schemes of gRPC's addresses that are not HOST:PORT.
SCHEMES = ("dns:", "ipv4:", "ipv6:", "unix:", "unix-abstract:", "vsock:", "xds:")

_MAX_TOKEN_BYTES = 4096
# Pings keep load balancers from forgetting a silent connection, some after 15 s, and detect one that is dead. They are
# sent in silent calls, and between calls.
_PING_AFTER_MS = 10 * 1000
_PING_TIMEOUT_MS = 20 * 1000
# Reconnect within seconds, like the retries of calls. gRPC's default backoff grows to two minutes.
_FIRST_RECONNECT_MS = 200
_LONGEST_RECONNECT_MS = 2000


def split_servers(server: str | Sequence[str]) -> tuple[str, ...]:
    """Splits "a:1,b:2" into addresses; also accepts a sequence. Raises ValueError if there is none, or one has no
    port."""
    if isinstance(server, str):
        # gRPC's ipv4:A,B and ipv6:A,B are one target.
        server = [server] if server.startswith(("ipv4:", "ipv6:")) else server.split(",")
    servers = tuple(one.strip() for one in server)
    if not servers or not all(servers):
        raise ValueError(f"server is {server!r}; it must be HOST:PORT, or several of them")
    for one in servers:
        _check_address(one)
    return servers


def _check_address(server: str) -> None:
    """Raises ValueError for a URL, and for an address without a port: gRPC would connect to port 443, and report no
    error."""
    if server.startswith(SCHEMES):
        return
    scheme, is_url, _ = server.lower().partition("://")
    if is_url:
        encrypt = "; to encrypt give tls=True or tls_ca" if scheme in ("https", "grpcs") else ""
        raise ValueError(
            f"server is {server!r}; it must be HOST:PORT of gRPC, by default port 8500, without {scheme}://{encrypt}"
        )
    found = re.fullmatch(r"(?:\[[^]]+\]|[^:]+):(\d{1,5})", server)
    if found is None or not 0 < int(found[1]) < 65536:
        raise ValueError(f"the server {server} is not HOST:PORT with a port from 1 to 65535")


def is_this_machine(server: str) -> bool:
    """Whether the address is on this machine. localhost is the only accepted name: others could resolve differently
    later."""
    if server.startswith(("unix:", "[::1]:")):
        return True
    host = server.rpartition(":")[0]
    return host == "localhost" or (host.startswith("127.") and set(host) <= set(string.digits + "."))


@dataclass(frozen=True)
class Connection:
    """The connection options of Client. Raises ValueError for invalid combinations."""

    servers: tuple[str, ...]
    tls: bool = False
    tls_ca: Paths = None
    tls_certificate: Paths = None
    tls_key: Paths = None
    tls_server_name: str = ""
    token: str = field(default="", repr=False)
    token_file: Paths = None
    insecure: bool = False
    health_check: bool = True

    def __post_init__(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key must be given together")
        if self.token and self.token_file is not None:
            raise ValueError("give token or token_file, not both")
        if self.token:
            _check_token(self.token, "token")
        if not self.may_use_proxy:
            for server in self.servers:
                if not is_this_machine(server):
                    raise ValueError(
                        f"the token would be sent unencrypted to {server}: give tls_ca or tls to encrypt, or"
                        " insecure=True to send it unencrypted"
                    )

    @property
    def encrypted(self) -> bool:
        files = (self.tls_ca, self.tls_certificate, self.tls_key)
        return self.tls or bool(self.tls_server_name) or any(file is not None for file in files)

    @property
    def may_use_proxy(self) -> bool:
        """A token that is safe unencrypted only on this machine must not pass through a proxy."""
        return not self.has_token or self.encrypted or self.insecure

    @property
    def has_token(self) -> bool:
        return bool(self.token) or self.token_file is not None

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Reads the TLS files; returns None without TLS. Raises ValueError naming a file that cannot be read."""
        if not self.encrypted:
            return None
        return grpc.ssl_channel_credentials(
            _read_pem(self.tls_ca, "tls_ca"),
            _read_pem(self.tls_key, "tls_key"),
            _read_pem(self.tls_certificate, "tls_certificate"),
        )

    def check_files(self) -> None:
        """Raises ValueError for a file that cannot be read. Reads FIFOs for the whole process."""
        self.credentials()
        Token(self)

    def files_changed_at(self) -> tuple[int, ...]:
        """Returns a value that changes when one of the TLS files changes."""
        files = (self.tls_ca, self.tls_certificate, self.tls_key)
        return tuple(_changed_at(file) for file in files if file is not None)

    def channel_options(self) -> list[tuple[str, int | str]]:
        options: list[tuple[str, int | str]] = [
            ("grpc.service_config", json.dumps(self.service_config())),
            # The client requested the answer, so it accepts any size.
            ("grpc.max_receive_message_length", -1),
            ("grpc.primary_user_agent", f"longshort-python/{__version__}"),
            ("grpc.keepalive_time_ms", _PING_AFTER_MS),
            ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),  # no limit
            ("grpc.initial_reconnect_backoff_ms", _FIRST_RECONNECT_MS),
            ("grpc.min_reconnect_backoff_ms", 10 * _LONGEST_RECONNECT_MS),
            ("grpc.max_reconnect_backoff_ms", _LONGEST_RECONNECT_MS),
            # Clients do not share connections, so that closing one ends its own.
            ("grpc.use_local_subchannel_pool", 1),
        ]
        if self.tls_server_name:
            options.append(("grpc.ssl_target_name_override", self.tls_server_name))
        if not self.may_use_proxy:
            options.append(("grpc.enable_http_proxy", 0))
        return options

    def service_config(self) -> dict[str, object]:
        """Uses all addresses of a name round-robin, and skips servers that report that they are not serving. Disables
        gRPC's retries, which know neither which calls are safe nor about changed files."""
        config: dict[str, object] = {"loadBalancingConfig": [{"round_robin": {}}]}
        if self.health_check:
            config["healthCheckConfig"] = {"serviceName": ""}
        return config


def _check_token(token: str, what: str) -> None:
    if not token or len(token) > _MAX_TOKEN_BYTES or not all("!" <= character <= "~" for character in token):
        raise ValueError(f"{what} must contain one token: one line of printable ASCII characters without spaces")


def _read_pem(file: Paths, what: str) -> bytes | None:
    if file is None:
        return None
    content = read_option_file(file, what)
    if b"-----BEGIN " not in content:
        raise ValueError(f"{what}={os.fspath(file)} is not a PEM file")
    return content


def _changed_at(file: str | os.PathLike[str]) -> int:
    """Returns a number that changes when the file changes; 0 if the file does not exist."""
    try:
        status = os.stat(file)
    except OSError:
        return 0
    return hash((status.st_mtime_ns, status.st_size, status.st_ino))


class Token:
    """The token of every call. Reads the file again when it changes; keeps the last valid token while the file is
    invalid.

    Thread-safe.
    """

    def __init__(self, connection: Connection) -> None:
        """Raises ValueError if the file is invalid at the start."""
        self._file = connection.token_file
        self._known = (0, connection.token)
        if self._file is not None:
            self._known = (_changed_at(self._file), self._read())

    def authorization(self) -> str:
        """The metadata `authorization`; empty without a token."""
        if self._file is not None and (changed := _changed_at(self._file)) != self._known[0]:
            with contextlib.suppress(ValueError):
                self._known = (changed, self._read())
        token = self._known[1]
        return f"Bearer {token}" if token else ""

    def _read(self) -> str:
        name = f"token_file={os.fspath(self._file or '')}"
        token = read_option_file(self._file or "", "token_file").decode("ascii", "replace").strip()
        _check_token(token, name)
        return token


class Endpoints(Generic[C]):
    """A channel for each address, opened on first use.

    Calls use the addresses round-robin. All calls of a session use the same address, chosen by a hash of its id,
    because only one server has the session. Clients with the same addresses choose the same one.

    Thread-safe.
    """

    def __init__(
        self,
        connection: Connection,
        open_channel: Callable[[str, grpc.ChannelCredentials | None, list[tuple[str, int | str]]], C],
    ) -> None:
        """Raises ValueError for files that cannot be read."""
        self._connection = connection
        self._open = open_channel
        self._lock = threading.Lock()
        self._files = connection.files_changed_at()
        self._credentials = connection.credentials()
        self._channels: dict[str, C] = {}
        self._replaced: list[C] = []
        self._turn = 0
        self._unreachable = False
        self._pid = os.getpid()
        self._closed = False

    def unreachable(self) -> None:
        """Records that a server could not be reached: new channels then use changed TLS files."""
        self._unreachable = True

    def channel(self, session_id: str = "") -> C:
        """Returns the channel of a new attempt: the session's address, or the next one."""
        if os.getpid() != self._pid:
            raise RuntimeError(
                "this client was made before fork(): its connections are the parent's. Make a client in each process"
            )
        with self._lock:
            if self._closed:
                raise RuntimeError("the client is closed")
            servers = self._connection.servers
            if session_id:
                server = max(servers, key=lambda one: hashlib.sha256(f"{session_id}\n{one}".encode()).digest())
            else:
                server = servers[self._turn % len(servers)]
                self._turn += 1
            if self._unreachable:
                self._take_new_files()
            if server not in self._channels:
                self._channels[server] = self._open(server, self._credentials, self._connection.channel_options())
            return self._channels[server]

    def _take_new_files(self) -> None:
        """Reloads changed TLS files. Calls on the old channels continue."""
        changed = self._connection.files_changed_at()
        if changed == self._files:
            self._unreachable = False
            return
        try:
            self._credentials = self._connection.credentials()
        except ValueError:
            return  # partially written: the next attempt checks again
        self._files = changed
        self._replaced += self._channels.values()
        self._channels = {}

    def close(self) -> list[C]:
        """Returns the channels to close; none the second time."""
        with self._lock:
            self._closed = True
            opened = [*self._channels.values(), *self._replaced]
            self._channels, self._replaced = {}, []
            return opened

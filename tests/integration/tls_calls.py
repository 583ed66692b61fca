"""Connections with TLS, as clients written elsewhere make them."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from integration.certificates import Pair, tls_options
from integration.server_process import Server

# Seconds after which an unanswered handshake ends, and how long a refused client waits for its answer.
PATIENCE = 20


def files_of(folder: Path, pair: Pair) -> list[str]:
    """The options of this certificate, in files of `folder`."""
    pair.write(folder, "server")
    return tls_options(folder)


def trusting_context() -> ssl.SSLContext:
    """For clients that take any certificate."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.set_alpn_protocols(["h2"])
    return tls


def call(channel: grpc.Channel) -> None:
    health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)


def channel_to(server: Server, trusted: bytes, pair: Pair | None = None) -> grpc.Channel:
    """A new connection of a client that has this certificate."""
    own = (None, None) if pair is None else (pair.key_pem, pair.certificate_pem)
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
    return grpc.secure_channel(f"127.0.0.1:{server.grpc_port}", grpc.ssl_channel_credentials(trusted, *own), options)


def is_taken(server: Server, trusted: bytes, pair: Pair | None = None) -> bool:
    """Whether a client that comes now with this certificate is served."""
    with channel_to(server, trusted, pair) as channel:
        try:
            call(channel)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error
            return False
    return True

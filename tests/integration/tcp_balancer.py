"""A real Envoy that shares out connections, not calls, among servers that are ready: what a Service of Kubernetes with
one address does."""

from __future__ import annotations

import json
from pathlib import Path

import grpc

from integration.envoy_process import EnvoyProcess
from integration.server_process import wait_until

TYPES = "type.googleapis.com/envoy.extensions"


def address(port: int) -> dict[str, object]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def configuration(ports: list[int], idle_timeout: str) -> dict[str, object]:
    proxy = {
        "@type": f"{TYPES}.filters.network.tcp_proxy.v3.TcpProxy",
        "stat_prefix": "tcp",
        "cluster": "servers",
        "idle_timeout": idle_timeout,
    }
    endpoints = [{"endpoint": {"address": address(port)}} for port in ports]
    protocol = {
        "@type": f"{TYPES}.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},  # of the health checks
    }
    health_check = {
        "timeout": "5s",
        "interval": "0.1s",
        "no_traffic_interval": "0.1s",
        "unhealthy_threshold": 1,
        "healthy_threshold": 1,
        "grpc_health_check": {},
    }
    cluster = {
        "name": "servers",
        "type": "STATIC",
        "load_assignment": {"cluster_name": "servers", "endpoints": [{"lb_endpoints": endpoints}]},
        "health_checks": [health_check],
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "typed_extension_protocol_options": {f"{TYPES.split('/')[1]}.upstreams.http.v3.HttpProtocolOptions": protocol},
    }
    listener = {
        "address": address(0),
        "filter_chains": [{"filters": [{"name": "envoy.filters.network.tcp_proxy", "typed_config": proxy}]}],
    }
    return {"admin": {"address": address(0)}, "static_resources": {"listeners": [listener], "clusters": [cluster]}}


class TcpBalancer(EnvoyProcess):
    """In front of servers at these ports, once it has found all of them ready. It closes connections that are idle for
    `idle_timeout`."""

    def __init__(self, folder: Path, ports: list[int], idle_timeout: str = "3600s") -> None:
        folder.mkdir()
        file = folder / "envoy.json"
        file.write_text(json.dumps(configuration(ports, idle_timeout)))
        super().__init__(folder, file)
        wait_until(lambda: all(self.health(port) == {True} for port in ports))

    def new_channel(self, *more: tuple[str, object]) -> grpc.Channel:
        """A connection to one of the servers, with these channel arguments more."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0), *more]
        return grpc.insecure_channel(f"127.0.0.1:{self.port}", options)

"""Another client: makes small calls all along and prints how long they took.

Measures by gRPC, by HTTP (one call on the thread of connections, one beyond 16 KiB) and /livez as a probe asks for it,
on a new connection each time.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import ssl
import threading
import time
from collections.abc import Callable

import grpc
from integration.images import png, some_pixels

from hostile.messages import IMAGES, LANGUAGE_MODEL, TOKENIZE, field, model, some_json, text
from hostile.target import Target, parser, target_of, trusting_context

PATIENCE = 20.0  # seconds
LARGE = "HTTP, 200 KB"
WORDS = {"model": {"name": LANGUAGE_MODEL}, "input": {"text": "a small call"}}
# 17 KB of which the answer is 3,000 tokens.
LARGER = some_json(**WORDS).replace(b"a small call", b"\\u0061" * 2_900)


class Client:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.fields = {"authorization": f"Bearer {target.token}"} if target.token else {}
        address = f"{target.host}:{target.grpc_port}"
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        self.context = None
        if target.tls:
            pem = ssl.get_server_certificate((target.host, target.http_port)).encode()
            channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(pem), options)
            self.context = trusting_context("http/1.1")
        else:
            channel = grpc.insecure_channel(address, options)
        self.tokenize = channel.unary_unary(TOKENIZE)
        self.image = png(some_pixels(1, 260, 260))  # 200 KB
        self.kept: dict[bytes, http.client.HTTPConnection] = {}

    def by_grpc(self) -> None:
        message = model(LANGUAGE_MODEL) + field(2, text("a small call"))
        self.tokenize(message, timeout=PATIENCE, metadata=list(self.fields.items()))

    def connection(self) -> http.client.HTTPConnection:
        if self.context is None:
            return http.client.HTTPConnection(self.target.host, self.target.http_port, timeout=PATIENCE)
        return http.client.HTTPSConnection(
            self.target.host, self.target.http_port, timeout=PATIENCE, context=self.context
        )

    def by_http(self, body: bytes, path: str = TOKENIZE, kind: str = "application/json") -> None:
        """On a connection that is kept; again on a new one, if the server has closed it meanwhile."""
        for last in (False, True):
            connection = self.kept.pop(body, None) or self.connection()
            try:
                connection.request("POST", path, body, {"content-type": kind, **self.fields})
                answer = connection.getresponse()
                content = answer.read()
            except (ConnectionError, http.client.BadStatusLine):
                connection.close()
                if last:
                    raise
                continue
            self.kept[body] = connection
            if answer.status != 200:
                raise RuntimeError(f"status {answer.status}: {content[:200].decode()}")
            return

    def livez(self) -> None:
        with contextlib.closing(self.connection()) as connection:
            connection.request("GET", "/livez")
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"status {answer.status}")


def measure(call: Callable[[], None], end: float, interval: float) -> dict[str, object]:
    """Calls until `end`, at least once. A call that failed counts as one that took all its patience."""
    milliseconds, failures = [], []
    while not milliseconds or time.monotonic() < end:
        begin = time.monotonic()
        try:
            call()
            milliseconds.append((time.monotonic() - begin) * 1000)
        except (OSError, RuntimeError, grpc.RpcError, http.client.HTTPException) as error:
            milliseconds.append(PATIENCE * 1000)
            failures.append(f"{type(error).__name__}: {str(error)[:300]}")
            time.sleep(0.2)
        time.sleep(interval)
    milliseconds.sort()
    p99 = milliseconds[max(0, math.ceil(len(milliseconds) * 0.99) - 1)]
    return {"calls": len(milliseconds), "p99": p99, "longest": milliseconds[-1], "failures": failures[:3]}


def main() -> None:
    given = parser(__doc__).parse_args()
    with contextlib.suppress(PermissionError):
        os.nice(-10)  # so that its own waiting for a processor does not count
    client = Client(target_of(given))
    small = some_json(**WORDS)
    calls = {
        "gRPC": client.by_grpc,
        "HTTP": lambda: client.by_http(small),
        "HTTP, 17 KB": lambda: client.by_http(LARGER),
        LARGE: lambda: client.by_http(client.image, f"/classify?model={IMAGES}", "image/png"),
        "/livez": client.livez,
    }
    end = time.monotonic() + given.seconds
    found: dict[str, dict[str, object]] = {}

    def run(name: str) -> None:
        found[name] = measure(calls[name], end, 0.3 if name == LARGE else 0.02)

    threads = [threading.Thread(target=run, args=(name,)) for name in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""A server that each request kills after it was read. Health checks do not.

Run with a file, to which it appends a line for each request. Prints its ports for gRPC and HTTP.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NoReturn

import grpc

SERVING = b"\x08\x01"


def die(_: object = None, __: object = None) -> NoReturn:
    with open(sys.argv[1], "a") as requests:
        requests.write("request\n")
    os._exit(1)


class Calls(grpc.GenericRpcHandler):
    def service(self, call: Any) -> Any:
        if call.method == "/grpc.health.v1.Health/Check":
            return grpc.unary_unary_rpc_method_handler(lambda _, __: SERVING)
        return grpc.unary_unary_rpc_method_handler(die)


class Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        die()

    def log_message(self, *_: object) -> None: ...


if __name__ == "__main__":
    server = grpc.server(ThreadPoolExecutor(4), [Calls()])
    grpc_port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    web = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    print(grpc_port, web.server_port, flush=True)
    web.serve_forever()

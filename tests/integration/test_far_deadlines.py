"""Deadlines that nanoseconds since 1970 have no room for. gRPC's own clients in C++ and Python send none beyond three
years; others do, so these calls are written by hand.
"""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from integration import http2
from integration.server_process import Server, wait_until


@pytest.mark.parametrize("hours", [1, 2_000_000, 2_700_000, 10_000_000, 99_999_999])
def test_a_deadline_may_be_millennia_away(api: SimpleNamespace, server: Server, hours: int) -> None:
    def ended() -> dict[str, float]:
        codes = ["OK", "DEADLINE_EXCEEDED"]
        return {code: server.metric("longshort_requests_total", rpc="Generate", code=code) for code in codes}

    before = ended()
    message = api.inference.GenerateRequest(prompt={"text": "p"}, max_tokens=2).SerializeToString()
    with socket.create_connection(("127.0.0.1", server.grpc_port)) as connection:
        connection.sendall(http2.BEGINNING + http2.call("/longshort.v1.Inference/Generate", message, f"{hours}H"))
        wait_until(lambda: ended() != before)
    assert ended() == {**before, "OK": before["OK"] + 1}

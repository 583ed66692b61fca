"""What a failing call must look like."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest


@contextmanager
def error(code: grpc.StatusCode, *parts: str) -> Iterator[None]:
    """The calls inside end with `code` and a message that has all of `parts`."""
    with pytest.raises(grpc.RpcError) as caught:
        yield
    assert caught.value.code() == code, caught.value
    for part in parts:
        assert part in caught.value.details()

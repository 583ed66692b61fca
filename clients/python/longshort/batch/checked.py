"""JSON objects as files, each with a checksum of itself, which tells what a broken disk has changed."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def json_line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def with_check(told: dict[str, Any]) -> bytes:
    return json_line(told | {"check": _check(told)})


def without_check(content: bytes) -> dict[str, Any] | None:
    """None for what is not as it was written."""
    try:
        told = json.loads(content)
        return told if isinstance(told, dict) and told.pop("check") == _check(told) else None
    except (ValueError, KeyError):
        return None


def _check(told: dict[str, Any]) -> str:
    return hashlib.sha256(json_line(told)).hexdigest()[:16]

"""JSON objects as files. Each has a checksum of itself, which detects what a broken disk has changed."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def json_line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def add_checksum(fields: dict[str, Any]) -> bytes:
    return json_line(fields | {"check": _checksum(fields)})


def parse_checksummed(content: bytes) -> dict[str, Any] | None:
    """The object without its checksum; None if the checksum is missing or wrong."""
    try:
        fields = json.loads(content)
        return fields if isinstance(fields, dict) and fields.pop("check") == _checksum(fields) else None
    except (ValueError, KeyError):
        return None


def _checksum(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json_line(fields)).hexdigest()[:16]

"""Runs longshort_convert as its program does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from longshort_convert.__main__ import main


def convert(*arguments: object) -> int:
    """The exit status."""
    return main([str(argument) for argument in arguments])


def config_of(model: Path) -> dict[str, Any]:
    return json.loads((model / "config.json").read_text())


def refusal(capsys: pytest.CaptureFixture[str], out: Path, *arguments: object) -> str:
    """The message of a refusal, which leaves nothing behind."""
    before = sorted(out.parent.iterdir())
    assert convert(*arguments, "--out", out) == 2
    assert sorted(out.parent.iterdir()) == before
    message = capsys.readouterr().err
    assert message.startswith("longshort_convert: ")
    return message

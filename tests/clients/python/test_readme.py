"""The client's README: its programs run unchanged, except for the server's port."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from integration.server_process import ROOT, Server

from clients.python.conftest import address

README = (ROOT / "clients/python/README.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run(*command: str) -> str:
    """The standard output of a command, which must succeed."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def here(text: str, server: Server) -> str:
    return text.replace("127.0.0.1:8500", address(server))


def test_the_first_program_generates(zoo: Server) -> None:
    before = zoo.metric("longshort_generated_tokens_total", model="enwiki")
    assert len(run(sys.executable, "-c", here(PROGRAMS[0], zoo)).encode()) > 100
    assert zoo.metric("longshort_generated_tokens_total", model="enwiki") - before == 200


@pytest.mark.parametrize("program", PROGRAMS[1:])
def test_programs_run(zoo: Server, program: str) -> None:
    printed = run(sys.executable, "-c", here(program, zoo).replace('"alice.token"', "None"))
    assert printed or "print" not in program


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (Path(ROOT / "clients/python") / target).exists(), target
    assert os.access(ROOT / "clients/python/generate", os.X_OK)

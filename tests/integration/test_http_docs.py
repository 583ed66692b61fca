"""docs/http.md: its calls run as they stand there, except for the port, and its error is the server's."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator

import pytest

from integration.connect_calls import TOKENIZE, post
from integration.server_process import ROOT, Server

pytestmark = pytest.mark.not_sanitized("about the words of the documentation")

PAGE = (ROOT / "docs/http.md").read_text()
(COMMANDS,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(ROOT / "models/zoo", tmp_path_factory.mktemp("zoo")) as server:
        yield server


@pytest.mark.parametrize("command", COMMANDS.splitlines())
def test_each_call_is_answered(zoo: Server, command: str) -> None:
    command = command.replace("localhost:8501", f"127.0.0.1:{zoo.http_port}").replace("curl ", "curl -sS --fail ", 1)
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_the_error_is_the_servers(zoo: Server) -> None:
    (error,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    status, _, body = post(zoo, TOKENIZE, b'{"text":"x"}')
    assert (status, json.loads(body)) == (400, json.loads(error))

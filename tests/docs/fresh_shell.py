"""A shell that was just opened in the checkout, on a machine without a network, after deploy/quickstart --keep."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from integration.server_process import BINARY, ROOT

from docs.blocks import Block

SECONDS = 150
# Network namespaces begin with their loopback interface down. 0x8914 is SIOCSIFFLAGS, and 1 is IFF_UP.
LOOPBACK_UP = (
    "import fcntl, socket; fcntl.ioctl(socket.socket(), 0x8914, b'lo'.ljust(16, b'\\0') + b'\\1'.ljust(24, b'\\0'))"
)
# Without an answer of 2xx curl fails.
CURL_OPTIONS = "silent\nshow-error\nfail-with-body\n"


def make_checkout(folder: Path) -> None:
    """A folder that looks like the checkout. What a page writes there stays there."""
    binaries = folder / "build/release/bin"
    binaries.mkdir(parents=True)
    for real, here in ((ROOT, folder), (BINARY.parent, binaries)):
        for path in real.iterdir():
            if path.name not in ("build", ".git", BINARY.name):
                (here / path.name).symlink_to(path)
    (binaries / BINARY.name).symlink_to(ROOT / "tests/docs/longshort-server")


def run_blocks(blocks: list[Block], checkout: Path, home: Path) -> list[str]:
    """Runs blocks in one shell, as they stand, and returns what each of them prints to standard output."""
    (home / ".curlrc").write_text(CURL_OPTIONS)
    lines = [
        "set -eo pipefail",
        f'.venv/bin/python -c "{LOOPBACK_UP}"',
        "build/release/bin/longshort-server --model-repository=models/zoo",
    ]
    for number, block in enumerate(blocks):
        if block.language == "python":
            (home / f"{number}.py").write_text(block.code)
        lines += ["printf '\\0'", f".venv/bin/python {home}/{number}.py" if block.language == "python" else block.code]
    script = home / "script"
    script.write_text("\n".join([*lines, ""]))
    variables = {"HOME": str(home), "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin"}
    variables["LONGSHORT_BINARIES"] = str(BINARY.parent)
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    with (home / "stdout").open("w+") as stdout, (home / "stderr").open("w+") as stderr:
        shell = subprocess.Popen(
            ["unshare", "--net", *as_root, "bash", script],
            cwd=checkout,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            code = shell.wait(SECONDS)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)  # the servers, too
            shell.wait()
    setup, *outputs = (home / "stdout").read_text().split("\0")
    last = blocks[len(outputs) - 1].code if outputs else setup
    assert code == 0, f"exit code {code}:\n{last}\n{''.join(outputs[-1:])}{(home / 'stderr').read_text()}"
    return outputs

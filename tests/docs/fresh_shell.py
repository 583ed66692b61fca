"""A shell that was just opened in the checkout, on a machine without a network, after deploy/quickstart --keep."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from integration.server_process import BINARY, ROOT

from docs.blocks import Block

SECONDS = 300
# Network namespaces begin with their loopback interface down. 0x8914 is SIOCSIFFLAGS, and 1 is IFF_UP.
LOOPBACK_UP = (
    "import fcntl, socket; fcntl.ioctl(socket.socket(), 0x8914, b'lo'.ljust(16, b'\\0') + b'\\1'.ljust(24, b'\\0'))"
)
# Without an answer of 2xx curl fails.
CURL_OPTIONS = "silent\nshow-error\nfail-with-body\n"


class FreshShell:
    def __init__(self, folder: Path) -> None:
        """Below `folder` are a home and a folder that looks like the checkout. What a page writes there stays there."""
        self.home = folder / "home"
        self.home.mkdir()
        (self.home / ".curlrc").write_text(CURL_OPTIONS)
        self.checkout = folder / "longshort"
        binaries = self.checkout / "build/release/bin"
        binaries.mkdir(parents=True)
        for real, here in ((ROOT, self.checkout), (BINARY.parent, binaries)):
            for path in real.iterdir():
                if path.name not in ("build", ".git", BINARY.name):
                    (here / path.name).symlink_to(path)
        (binaries / BINARY.name).symlink_to(ROOT / "tests/docs/longshort-server")

    def run(self, blocks: list[Block], **variables: str) -> list[str]:
        """Runs blocks one after the other, as they stand, and returns what each of them prints to standard output.
        `variables` are further ones of the environment."""
        lines = ["set -eo pipefail", f'.venv/bin/python -c "{LOOPBACK_UP}"']
        lines += ["build/release/bin/longshort-server --model-repository=models/zoo"]
        for number, block in enumerate(blocks):
            program = self.home / f"{number}.py"
            program.write_text(block.code)
            lines += ["printf '\\0'", f".venv/bin/python {program}" if block.language == "python" else block.code]
        script = self.home / "script"
        script.write_text("\n".join([*lines, ""]))
        usual = {"HOME": str(self.home), "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin"}
        usual["LONGSHORT_BINARIES"] = str(BINARY.parent)
        # Other tests use the same CPUs: threads that spin there make a server up to a hundred times slower.
        usual["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "passive")
        as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
        stdout, stderr = self.home / "stdout", self.home / "stderr"
        with stdout.open("w") as out, stderr.open("w") as errors:
            shell = subprocess.Popen(
                ["unshare", "--net", *as_root, "timeout", f"{SECONDS}s", "bash", script],
                cwd=self.checkout,
                env=usual | variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                start_new_session=True,
            )
            code = shell.wait()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)  # the servers
        _, *printed = stdout.read_text().split("\0")
        last = blocks[len(printed) - 1].code if printed else "the server's start"
        assert code == 0, f"exit code {code}:\n{last}\n{''.join(printed[-1:])}{stderr.read_text()}"
        return printed

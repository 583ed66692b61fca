"""Clients of TLS that change the keys all the time and send nothing else. Python's TLS cannot: openssl does."""

from __future__ import annotations

import asyncio
import contextlib
import time

from hostile.target import Target, main

IDLE_SECONDS = 5  # after which the server closes a connection without a request


async def client(target: Target) -> None:
    address = f"{target.host}:{target.http_port}"
    process = await asyncio.create_subprocess_exec(
        *("openssl", "s_client", "-connect", address, "-tls1_3"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    target.seen["connections"] += 1
    begin = time.monotonic()
    try:
        with contextlib.suppress(OSError):  # openssl has ended
            while process.returncode is None:
                process.stdin.write(b"k\n")  # a command of openssl, if it reads it alone
                await process.stdin.drain()
                await asyncio.sleep(0.0005)
                target.seen["keys"] += 1
        if time.monotonic() - begin < IDLE_SECONDS / 2:
            target.seen["closed for its keys"] += 1
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


CLIENTS = {"keys": (8, client)}

if __name__ == "__main__":
    main(__doc__, CLIENTS)

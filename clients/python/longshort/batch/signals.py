"""How the program is asked to end."""

from __future__ import annotations

import asyncio
import signal
from types import FrameType

# The name of the task that is a run: what ends it is cancelling it.
RUN = "longshort-batch"


def end_by_sigterm() -> None:
    """SIGTERM ends the program as Ctrl-C does: shards that are being written are finished.

    A shell that starts a program in the background may have it ignore SIGINT. It goes on doing so, and SIGTERM ends it.

    Thread: main.
    """
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt outside a run, or when it comes again. A run ends by that, or by CancelledError."""
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)  # of Python, or, while a run goes on, of asyncio
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise KeyboardInterrupt from None
    for task in asyncio.all_tasks(loop):
        if task.get_name() == RUN:
            if task.cancelling():
                raise KeyboardInterrupt
            task.cancel()
    loop.call_soon_threadsafe(lambda: None)  # wakes it

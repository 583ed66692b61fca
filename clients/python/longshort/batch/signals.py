"""Handles the signals that end the program."""

from __future__ import annotations

import asyncio
import signal
from types import FrameType

# The name of a run's task. Cancelling the task ends the run.
RUN = "longshort-batch"


def handle_sigterm() -> None:
    """Makes SIGTERM end the program as Ctrl-C does: it first finishes the shards that are being written.

    A program that a shell has started in the background may ignore SIGINT. It continues to, and SIGTERM ends it.

    Thread: main.
    """
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Cancels the run. Raises KeyboardInterrupt outside a run, or at the second signal."""
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)  # Python's handler, or asyncio's during a run
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
    loop.call_soon_threadsafe(lambda: None)  # wakes the loop

"""Handles the signals that end the program."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType

# The name of a run's task. Cancelling the task ends the run.
RUN = "longshort-batch"
# Time after a signal until the program ends, whatever it waits for: a mount that does not answer, a store, a pipe.
_MAX_SECONDS = 8.0
_REPORT_SECONDS = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def handle_signals(end: Callable[[], int], exit_code: int) -> None:
    """Makes SIGTERM end the program as Ctrl-C does: it first finishes the shards that are being written. If that, or a
    read, takes longer than 8 seconds, the program ends without it. Results stay valid, since files are put atomically.

    A program that a shell has started in the background may ignore SIGINT. It continues to, and SIGTERM ends it.

    end  reports that the program was interrupted, and returns its exit code; called in another thread

    Thread: main.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    # Python's handlers run once the main thread is back from a call that may never return. This one needs no thread.
    signal.set_wakeup_fd(writing.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_end_late, args=(reading, end, exit_code), name="longshort-signals", daemon=True).start()


def _end_late(reading: socket.socket, end: Callable[[], int], exit_code: int) -> None:
    while (number := reading.recv(1)) and number[0] not in _SIGNALS:
        pass
    if number:
        time.sleep(_MAX_SECONDS)
        # The report may hang, too, in a pipe that is full.
        threading.Thread(target=lambda: os._exit(end()), daemon=True).start()
        time.sleep(_REPORT_SECONDS)
        os._exit(exit_code)


def _interrupt(_: int, __: FrameType | None) -> None:
    """Cancels the run. Raises KeyboardInterrupt outside a run, or at the second signal."""
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

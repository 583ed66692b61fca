"""Shows the progress of a run: a bar on a terminal, regular lines elsewhere, or JSON lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Literal, TextIO

Style = Literal["bar", "lines", "json", "quiet"]
_WIDTH = 24
_BAR_SECONDS = 0.2
_LINE_SECONDS = 30.0


class Progress:
    """Thread: one."""

    def __init__(
        self,
        style: Style,
        stored_bytes: float,
        file: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`stored_bytes`: size of all inputs, from which the remaining work is estimated."""
        self._style = style
        self._file = file if file is not None else sys.stderr
        self._clock = clock
        self._total = max(1.0, stored_bytes)
        self._begun = clock()
        self._shown_at = self._begun - (_LINE_SECONDS if style in ("bar", "json") else 0)
        self._skipped = 0.0
        self._read = 0.0
        self.rows = self.errors = self.tokens = 0

    def skip(self, stored_bytes: float) -> None:
        """Skips input that earlier runs or other parts have done."""
        self._skipped += stored_bytes

    def advance(self, good: bool, tokens: int, stored_bytes: float) -> None:
        """Counts a row with a result, or with an error."""
        if good:
            self.rows += 1
        else:
            self.errors += 1
        self.tokens += tokens
        self._read += stored_bytes

    def show(self, server_errors: Mapping[str, str] | None = None) -> None:
        """Prints the progress if the interval is over."""
        now = self._clock()
        if now - self._shown_at < (_BAR_SECONDS if self._style == "bar" else _LINE_SECONDS) or self._style == "quiet":
            return
        self._shown_at = now
        elapsed = max(1e-9, now - self._begun)
        share = min(1.0, (self._skipped + self._read) / self._total)
        left = (1 - share) * self._total / (self._read / elapsed) if self._read > 0 else None
        if self._style == "json":
            self._json(share, left, elapsed, server_errors or {})
            return
        seconds_left = f", {_duration(left)} left" if left is not None else ""
        errors = f", {self.errors} errors" if self.errors else ""
        rate = f"{self.rows / elapsed:.1f} rows/s, {self.tokens / elapsed:.0f} tokens/s"
        line = f"{100 * share:5.1f} %  {self.rows} rows{errors}, {rate}{seconds_left}"
        if self._style == "bar":
            filled = int(_WIDTH * share)
            self._write(f"\r\033[K[{'#' * filled}{'.' * (_WIDTH - filled)}] {line}")
        else:
            self._write(f"{line}\n")

    def note(self, message: str) -> None:
        """Prints a message."""
        if self._style == "json":
            self._write(json.dumps({"event": "note", "message": message}) + "\n")
        elif self._style != "quiet":
            self._write(f"{message}\n")

    def end(self) -> None:
        if self._style == "bar":
            self._write("\r\033[K")

    def _json(self, share: float, left: float | None, elapsed: float, server_errors: Mapping[str, str]) -> None:
        event = {
            "event": "progress",
            "share": round(share, 4),
            "rows": self.rows,
            "errors": self.errors,
            "tokens": self.tokens,
            "seconds": round(elapsed, 3),
            "seconds_left": None if left is None else round(left, 1),
        }
        self._write(json.dumps(event | ({"servers_lost": dict(server_errors)} if server_errors else {})) + "\n")

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()


def _duration(seconds: float) -> str:
    """Formats a time as "2h05m", "3m20s" or "7s"."""
    whole = int(seconds + 0.5)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 60}m{whole % 60:02d}s" if whole >= 60 else f"{whole}s"

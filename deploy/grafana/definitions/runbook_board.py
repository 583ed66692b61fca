"""What should be done about each alert?"""

from __future__ import annotations

from typing import Any

from definitions.boards import board
from definitions.panels import words
from definitions.runbooks import RUNBOOKS, UID


def make() -> Any:
    last = len(RUNBOOKS) if len(RUNBOOKS) % 2 == 1 else 0
    panels = [words(name, book.content, width=24 if book.panel == last else 12) for name, book in RUNBOOKS.items()]
    return board(UID, "Runbooks", __doc__, [], [("", panels)])

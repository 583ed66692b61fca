"""Draws the pictures of docs/operations/dashboards.md: five minutes of a fleet's life, as a real Prometheus saw them.

.venv/bin/pip install -r tests/bench/requirements.txt
PYTHONPATH=tests .venv/bin/python -m dashboards.pictures
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path
from typing import Any

from integration.prometheus_process import Prometheus
from integration.server_process import ROOT

from dashboards.drawing import Board
from dashboards.fleet import TOKENS, Fleet
from dashboards.panels import DASHBOARDS, Asked
from dashboards.traffic import Traffic

PICTURES = ROOT / "docs/pictures"
STEP = 3.0  # seconds
WINDOW = "15s"
USERS = 3  # of each kind


def thinking(since: float) -> float:
    """Seconds between two calls of a user: much is asked after two minutes, and after four."""
    return 0.15 + 1.2 * (0.5 + 0.5 * math.cos(2 * math.pi * since / 120)) ** 2


def live(fleet: Fleet, seconds: float) -> None:
    """What happens meanwhile, by the share of the time."""
    began = time.monotonic()

    def wait(share: float) -> None:
        time.sleep(max(0.0, began + share * seconds - time.monotonic()))

    wait(0.2)
    fleet.add_version(3, layers=6)  # cannot be loaded
    wait(0.35)
    fleet.write_tokens("no token\n")
    wait(0.4)
    fleet.write_tokens()
    fleet.remove_version(3)
    wait(0.55)
    fleet.drain(1)
    wait(0.6)
    fleet.start_again(1)
    wait(0.85)
    fleet.remove_version(2)
    wait(1)


def draw(prometheus: Prometheus, begin: float, folder: Path) -> None:
    end = time.time()
    folder.mkdir(parents=True, exist_ok=True)
    for name, dashboard in DASHBOARDS.items():
        if all(panel["type"] == "text" for panel in dashboard["panels"]):
            continue
        opened = Asked(prometheus, dashboard, WINDOW)

        def ask(query: dict[str, Any], opened: Asked = opened) -> list[dict[str, Any]]:
            asked = opened.expression(query)
            return prometheus.ask("query_range", query=asked, start=begin, end=end, step=STEP)["result"]

        Board(ask, begin, end, STEP).draw(dashboard, folder / f"{name.removeprefix('longshort-')}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300, help="how long to look (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=PICTURES, help="folder for the pictures (default: %(default)s)")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        Fleet(Path(name), servers=3) as fleet,
        Prometheus(Path(name) / "prometheus", *fleet.servers, token=TOKENS["prometheus"]) as prometheus,
        Traffic(fleet, thinking, USERS, echo=False),
    ):
        time.sleep(20)  # so that rates have a window behind them
        begin = time.time()
        live(fleet, arguments.seconds)
        draw(prometheus, begin, arguments.out)


if __name__ == "__main__":
    main()

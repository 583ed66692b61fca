"""What the dashboards ask, answered by a real Prometheus that reads real servers under mixed load."""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from integration.prometheus_process import Prometheus
from integration.server_process import wait_until

from dashboards.fleet import TOKENS, Fleet
from dashboards.panels import DASHBOARDS, Asked, offered, panels, queries, variables
from dashboards.traffic import Traffic

METRIC = re.compile(r"\b(?:longshort|process)_\w+")
THINKING = 0.2  # seconds
# Twice what each alert or scrape needs at one second.
WINDOW = "5s"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("fleet")) as fleet, Traffic(fleet, THINKING):
        yield fleet


def up(prometheus: Prometheus) -> list[Any]:
    """The servers that it has read."""
    return prometheus.ask("query", query="longshort_model_load_failures_total == 0")["result"]


@pytest.fixture(scope="module")
def prometheus(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    servers = (*fleet.servers, fleet.identity)
    folder = tmp_path_factory.mktemp("prometheus") / "data"
    with Prometheus(folder, *servers, token=TOKENS["prometheus"]) as prometheus:
        wait_until(lambda: len(up(prometheus)) == len(servers))
        # Two things that alerts are about, once Prometheus has seen that there were none.
        fleet.add_version(3, layers=7)
        fleet.write_tokens("no token\n")
        yield prometheus


def asked(prometheus: Prometheus) -> dict[str, str]:
    """Each query, by the panel that asks it."""
    every = {}
    for name, board in DASHBOARDS.items():
        opened = Asked(prometheus, board, WINDOW)
        for panel in panels(board):
            kind = f"{panel['type']} {panel['title']}"
            every |= {f"{name}, {kind}, {query['refId']}": opened.expression(query) for query in queries(panel)}
    return every


def has_data(prometheus: Prometheus, query: str) -> bool:
    """Whether some line of the last 20 seconds has a number."""
    now = time.time()
    answer: Any = prometheus.ask("query_range", query=query, start=now - 20, end=now, step=1)
    values = itertools.chain.from_iterable(series["values"] for series in answer["result"])
    return any(math.isfinite(float(value)) for _, value in values)


def test_every_query_of_every_panel_has_data(prometheus: Prometheus) -> None:
    waiting = asked(prometheus)
    assert len(waiting) > 100

    def answered() -> bool:
        for name in [name for name, query in waiting.items() if has_data(prometheus, query)]:
            del waiting[name]
        return not waiting

    try:
        wait_until(answered, 50)
    except AssertionError:
        pytest.fail("without data: " + ", ".join(f"{name} ({query})" for name, query in waiting.items()))


def test_every_metric_that_is_asked_for_is_there(fleet: Fleet, prometheus: Prometheus) -> None:
    exported = set(prometheus.ask("metadata"))
    for name, query in asked(prometheus).items():
        for metric in METRIC.findall(query):
            assert metric in exported or re.sub(r"_(bucket|sum|count)$", "", metric) in exported, name


def test_variables_offer_what_is_served(prometheus: Prometheus) -> None:
    found = {
        (board["uid"], variable["name"]): set(offered(prometheus, variable, {"job": ".*", "model": ".*"}))
        for board in DASHBOARDS.values()
        for variable in variables(board)
    }
    assert found["longshort-overview", "model"] == {"enwiki", "flowers", "languages", "echo"}
    assert found["longshort-language-models", "model"] == {"enwiki"}
    assert found["longshort-classifiers", "model"] == {"flowers", "languages", "echo"}
    assert {"1", "2"} <= found["longshort-overview", "version"]
    assert len(found["longshort-fleet", "instance"]) == 3
    assert all(found[uid, name] == {"longshort"} for uid, name in found if name == "job")


def test_an_old_and_a_new_version_are_distinguished(fleet: Fleet, prometheus: Prometheus) -> None:
    def versions(query: str) -> set[str]:
        lines = [line["metric"] for line in prometheus.ask("query", query=query)["result"]]
        assert {line["model"] for line in lines} <= {"enwiki"}, "the dashboard has no classifiers"
        return {line["version"] for line in lines}

    opened = Asked(prometheus, DASHBOARDS["longshort-language-models"], WINDOW)
    by_version = [
        opened.expression(query)
        for panel in panels(DASHBOARDS["longshort-language-models"])
        for query in queries(panel)
        if "{{version}}" in query["legendFormat"]
    ]
    assert len(by_version) >= 10
    for query in by_version:
        wait_until(lambda query=query: versions(query) == {"1", "2"}, 20)

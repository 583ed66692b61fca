"""Tests how the scenarios evaluate a report, without measuring."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.load import bench, measure
from bench.load.bench import Bench
from bench.load.kept_ends import KeptEnds
from bench.load.processes import MemorySamples

NOTHING = {"count": 0, "p99": 0.0}
WORKLOAD = {
    "first_token_seconds": {"count": 7, "p99": 0.5},
    "inter_token_seconds": NOTHING,
    "total_seconds": {"OK": {"count": 7, "p99": 2.0}},
}


def test_quick_gives_way_to_what_is_asked_for() -> None:
    assert measure.parse(["streams"]).streams == 16
    quick = measure.parse(["streams", "--quick", "--streams=8"])
    assert quick.streams == 8
    assert quick.seconds < measure.parse(["streams"]).seconds


def test_percentiles_without_samples_are_none() -> None:
    assert bench.percentile(WORKLOAD, "first_token", "p99") == 0.5
    assert bench.percentile(WORKLOAD, "OK", "p99") == 2.0
    assert bench.percentile(WORKLOAD, "inter_token", "p99") is None
    assert bench.percentile(WORKLOAD, "RESOURCE_EXHAUSTED", "p99") is None
    assert bench.ratio(None, 1.0) is None
    assert bench.ratio(1.0, 0.0) is None
    assert bench.ratio(3.0, 2.0) == 1.5


def test_figures_say_whether_they_meet_their_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Bench(measure.parse(["streams", f"--json-dir={tmp_path}"]), ["streams"])
    run.at_least("fast enough", 3.0, 3)
    run.at_most("too slow", 3.1, 3)
    run.at_most("not measured", None, 3)
    run.report("only reported", 1234.5, "tok/s")
    run.finish("streams")
    reported = capsys.readouterr().out
    assert reported.count("MISSED") == 2
    assert "1,234 tok/s" in reported
    written = json.loads((tmp_path / "streams.json").read_text())
    assert [figure["met"] for figure in written["figures"]] == [True, False, False, None]
    assert written["command"] == "tests/bench/load/run streams"


def test_an_end_costs_what_the_kept_pages_are_by_end() -> None:
    reported = {
        ("longshort_cache_ends",): 10,
        ("longshort_cache_pages", "window", "kept"): 480,
        ("longshort_cache_pages", "segment", "kept"): 170,
        ("longshort_cache_pages", "window"): 999,
        ("longshort_cache_pages", "segment"): 400,
        ("longshort_cache_pages", "open_chunk"): 5,
        ("longshort_cache_page_bytes", "window"): 100,
        ("longshort_cache_page_bytes", "segment"): 50,
        ("longshort_cache_page_bytes", "open_chunk"): 7,
    }
    ends = KeptEnds.from_metrics(lambda name, **labels: float(reported.get((name, *labels.values()), 0)))
    assert ends is not None
    assert ends.bytes_of_one == 48 * 100 + 17 * 50
    assert ends.cache_bytes == 999 * 100 + 400 * 50 + 5 * 7
    # Window pages last for 20.8 ends, segment pages for 23.5.
    assert (ends.scarcest, ends.most) == ("window", 20)


def test_without_ends_nothing_is_said_of_them() -> None:
    assert KeptEnds.from_metrics(lambda name, **labels: 0.0) is None


def test_memory_is_compared_at_times() -> None:
    memory = MemorySamples(server=None)  # type: ignore[arg-type]
    memory.samples = [(0.5, 10), (1.0, 30), (1.5, 20), (9.0, 25)]
    assert memory.peak(0, 1.2) == 30
    assert memory.peak(1.2, 10) == 25
    assert memory.peak(2, 3) == 0

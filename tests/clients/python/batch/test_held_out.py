"""The scripts of tools/batches, which score held-out data in batches, on a part of these data.

`tools/batches/measure` does the whole (docs/batch.md). What is expected here are its answers to the same bytes and
texts: a language model reads from left to right, so the beginning of a text has the bits that it has in the whole.
languages.jsonl has 16 documents of held_out.jsonl, drawn by random.Random(1).sample, and the model is right for all.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import longshort.batch
import pyarrow.parquet as pq
import pytest
from integration.server_process import ROOT, Server

from clients.python.batch.corpus import read_rows
from clients.python.conftest import address

TOOLS = ROOT / "tools/batches"
SAMPLE = Path(__file__).parent / "held_out"
KINDS = ("parquet", "warc.gz")
# Of the first 16,384 bytes of the held-out text, by windows of 4,096 (--region-tokens=4096).
REGION_BITS = [7571.869, 7068.470, 6278.262, 5783.316]


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, TOOLS / script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def scored(zoo: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of longshort-batch for the part."""
    folder = tmp_path_factory.mktemp("held_out")
    made = run("held_out.py", SAMPLE / "enwiki.xml", SAMPLE / "languages.jsonl", folder)
    assert made.returncode == 0, made.stderr
    for kind in KINDS:
        out = folder / "scored"
        longshort.batch.score(
            str(folder / f"enwiki.{kind}"),
            str(out / f"enwiki.{kind}"),
            server=address(zoo),
            model="enwiki",
            region_tokens=4096,
        )
        longshort.batch.classify(
            str(folder / f"languages.{kind}"),
            str(out / f"languages.{kind}"),
            server=address(zoo),
            model="languages",
            truncate=True,
        )
    return folder / "scored"


@pytest.mark.parametrize("kind", KINDS)
def test_the_beginning_has_the_bits_that_it_has_in_the_whole(scored: Path, kind: str) -> None:
    (row,) = read_rows(scored / f"enwiki.{kind}")
    assert row["region_bits"] == pytest.approx(REGION_BITS, rel=1e-4)
    assert row["bits_per_byte"] == pytest.approx(sum(REGION_BITS) / 16383, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_have_the_labels_that_they_have_in_the_whole(scored: Path, kind: str) -> None:
    rows = read_rows(scored / f"languages.{kind}")
    truth = [json.loads(line)["label"] for line in (SAMPLE / "languages.jsonl").read_text().splitlines()]
    named = [
        row["truth"] if kind == "parquet" else unquote(row["url"].split("/")[0].removeprefix("urn:")) for row in rows
    ]
    assert named == truth
    assert [row["label"] for row in rows] == truth


def test_figures_are_compared_with_the_cards(scored: Path) -> None:
    """A part of the data has other figures, which is an error."""
    compared = run("figures.py", scored)
    assert compared.returncode == 1 and "not the figures of the cards" in compared.stderr
    for kind in KINDS:
        assert f"enwiki, {kind}: {sum(REGION_BITS) / 16383:.3f} bits per byte over 16,383 bytes; the card: 1.704" in (
            compared.stdout
        )
        assert f"languages, {kind}: 16 of 16 are right; the card: " in compared.stdout


def test_the_cleaner_half_is_kept(zoo: Server, tmp_path: Path) -> None:
    half = run("clean_half.py", SAMPLE / "enwiki.xml", SAMPLE / "languages.jsonl", tmp_path, f"--server={address(zoo)}")
    assert half.returncode == 0, half.stderr
    # Ten pieces of 1,500 bytes, of which five are spoiled.
    assert half.stdout.startswith("kept: 5 of 10 documents")
    kept = pq.read_table(tmp_path / "kept.parquet")
    scored = pq.read_table(tmp_path / "scored/rows")
    assert max(kept["bits_per_byte"].to_pylist()) == sorted(scored["bits_per_byte"].to_pylist())[4]
    assert "base64" in scored["kind"].to_pylist() and "base64" not in kept["kind"].to_pylist()
    assert all(kept["text"].to_pylist())

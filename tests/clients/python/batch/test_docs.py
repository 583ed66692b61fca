"""docs/batch.md: its commands and programs run unchanged, except for the server's port."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import longshort
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from integration.server_process import ROOT, Server

from clients.python.conftest import address

PAGE = (ROOT / "docs/batch.md").read_text()
LINES = [line for line in PAGE.splitlines() if line.startswith("longshort-batch ")]
ALL_PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
# Others are run by test_ray.py and test_datatrove.py.
PROGRAMS = [program for program in ALL_PROGRAMS if not re.search(r"longshort\.(ray|datatrove)", program)]


def test_the_page_does_what_it_says(zoo: Server, tmp_path: Path) -> None:
    """In its order, in one folder: programs read what commands have written."""
    (tmp_path / "corpus").mkdir()
    texts = [(ROOT / "deploy/paragraph.txt").read_text()[:length] for length in (100, 200, 300)]
    for name in ("a", "b"):
        pq.write_table(pa.table({"text": texts, "id": [1, 2, 3]}), tmp_path / f"corpus/{name}.parquet")
    pages = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (tmp_path / "pages.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(pages.encode()))
    assert len(LINES) == 4 and len(PROGRAMS) == 4
    for line in LINES:
        there = line.replace("longshort-batch", f"{sys.executable} -m longshort.batch")
        there = there.replace(":8500", f":{zoo.grpc_port}")
        there += "" if "--server" in there or "verify" in there else f" --server={address(zoo)}"
        done = subprocess.run(there, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
    for program in PROGRAMS:
        there = program.replace("127.0.0.1:8500", address(zoo))
        done = subprocess.run(
            [sys.executable, "-c", there], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0 and done.stdout, done.stderr
    with longshort.Client(address(zoo), model="enwiki") as client:
        wanted = [score.bits_per_byte for score in client.score(texts)]
    found = pq.read_table(tmp_path / "scored/rows")
    assert found.column("bits_per_byte").to_pylist() == pytest.approx([*wanted, *wanted], abs=1e-4)
    assert pq.read_table(tmp_path / "classified/rows").column("label").to_pylist()[0] == "English"


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", PAGE):
        assert (ROOT / "docs" / target).exists(), target

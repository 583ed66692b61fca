#!/usr/bin/env python3
"""Compares longshort-batch's results for the held-out data (held_out.py) with the figures of the model cards."""

import argparse
import re
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq

ZOO = Path(__file__).parents[2] / "models/zoo"
KINDS = ("parquet", "warc.gz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scored", type=Path, help="folder with the outputs enwiki.KIND and languages.KIND")
    given = parser.parse_args()
    bits = re.search(r"^\| this model, .* \*\*([\d.]+)\*\* \|$", (ZOO / "enwiki/README.md").read_text(), re.MULTILINE)
    right = re.search(r"\((\d+) of (\d+) documents\)", (ZOO / "languages/README.md").read_text())
    assert bits and right, "the cards have their figures elsewhere"
    different = []
    for kind in KINDS:
        (row,) = pq.read_table(given.scored / f"enwiki.{kind}" / "rows").to_pylist()
        found = f"{row['bits_per_byte']:.3f}"
        print(f"enwiki, {kind}: {found} bits per byte over {row['scored_token_count']:,} bytes; the card: {bits[1]}")
        different += [found] if found != bits[1] else []

        texts = pq.read_table(given.scored / f"languages.{kind}" / "rows").to_pylist()
        count = sum(row["label"] == truth_of(row) for row in texts)
        print(f"languages, {kind}: {count} of {len(texts)} are right; the card: {right[1]} of {right[2]}")
        different += [count] if (str(count), str(len(texts))) != right.groups() else []
    if different:
        raise SystemExit("not the figures of the cards")


def truth_of(row: dict[str, str]) -> str:
    """The correct label: a column of Parquet, or a part of the URL of a WARC record."""
    return row["truth"] if "truth" in row else unquote(row["url"].removeprefix("urn:").partition("/")[0])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Keeps the cleanest half of a mixed corpus, by the bits per byte of enwiki, and draws the histogram.

The corpus is the held-out text of enwiki, cut into pieces of 1,500 bytes. Every other piece is unchanged. The rest is
spoiled in turn: it is replaced by a text in another language, every tenth letter is changed, the words are shuffled,
or the bytes are encoded in base64.
"""

import argparse
import base64
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import longshort.batch
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PIECE = 1500
KINDS = ("clean", "other language", "letters changed", "words shuffled", "base64")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="the held-out part of enwiki_p10.xml")
    parser.add_argument("others", type=Path, help="held_out.jsonl, as languages/prepare.py makes it")
    parser.add_argument("out", type=Path, help="folder to write mixed.parquet, scored and kept.parquet into")
    parser.add_argument("--server", default="127.0.0.1:8500", help="default 127.0.0.1:8500")
    parser.add_argument("--picture", type=Path, help="PNG of the histogram (needs matplotlib)")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)

    lines = [json.loads(line) for line in given.others.read_text().splitlines()]
    others = [one["text"].encode() for one in lines if one["label"] != "English" and len(one["text"].encode()) >= PIECE]
    rows = mixed(given.text.read_bytes(), others)
    pq.write_table(pa.Table.from_pylist(rows), given.out / "mixed.parquet")
    longshort.batch.score(
        str(given.out / "mixed.parquet"),
        str(given.out / "scored"),
        carry=["text", "kind"],
        server=given.server,
        model="enwiki",
    )
    scored = pq.read_table(given.out / "scored/rows")
    bound = pc.quantile(scored["bits_per_byte"], q=0.5)[0].as_py()
    kept = scored.filter(pc.less_equal(scored["bits_per_byte"], bound))
    pq.write_table(kept, given.out / "kept.parquet")

    print(f"kept: {kept.num_rows} of {scored.num_rows} documents, with at most {bound:.3f} bits per byte")
    all_of, kept_of = Counter(scored["kind"].to_pylist()), Counter(kept["kind"].to_pylist())
    for kind in KINDS:
        bits = pc.mean(scored.filter(pc.equal(scored["kind"], kind))["bits_per_byte"]).as_py()
        print(f"  {kind:16} {kept_of[kind]:4} of {all_of[kind]:4}; on average {bits:.2f} bits per byte")
    if given.picture:
        draw(scored, bound, given.picture)


def mixed(text: bytes, others: list[bytes]) -> list[dict[str, Any]]:
    """The documents, in a fixed random order."""
    draw = random.Random(1)
    pieces = [text[begin : begin + PIECE] for begin in range(0, len(text) - PIECE + 1, PIECE)]
    rows = []
    for place, piece in enumerate(pieces):
        kind = KINDS[0] if place % 2 == 0 else KINDS[1 + place // 2 % 4]
        rows.append({"text": spoiled(piece, kind, others[place % len(others)], draw), "kind": kind})
    draw.shuffle(rows)
    return rows


def spoiled(piece: bytes, kind: str, other: bytes, draw: random.Random) -> bytes:
    if kind == "other language":
        return other[:PIECE]
    if kind == "letters changed":
        letters = b"abcdefghijklmnopqrstuvwxyz"
        return re.sub(rb"[a-z]", lambda one: bytes([draw.choice(letters)]) if draw.random() < 0.1 else one[0], piece)
    if kind == "words shuffled":
        words = piece.split(b" ")
        draw.shuffle(words)
        return b" ".join(words)
    return base64.b64encode(piece)[:PIECE] if kind == "base64" else piece


def draw(scored: pa.Table, bound: float, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    bits = {kind: scored.filter(pc.equal(scored["kind"], kind))["bits_per_byte"].to_pylist() for kind in KINDS}
    figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
    top = max(map(max, bits.values()))
    edges = [step * 0.125 for step in range(int(top / 0.125) + 2)]
    # Colours that colour-blind readers can distinguish.
    colours = ("#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#4D4D4D")
    axes.hist([bits[kind] for kind in KINDS], edges, stacked=True, color=colours, label=KINDS, edgecolor="white")
    axes.axvline(bound, color="black", linestyle="--", linewidth=1.2)
    axes.annotate(
        f"half of all: {bound:.2f}",
        (bound, axes.get_ylim()[1]),
        xytext=(6, -12),
        textcoords="offset points",
    )
    axes.set_xlabel("bits per byte (enwiki)")
    axes.set_ylabel("documents")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes the files of ListOps that longshort-train reads.

Those of the demo model: train.jsonl has short expressions (16 to 512 symbols, of evenly spread lengths) and long ones
(Long Range Arena's 501 to 1,999), and held_out_short.jsonl and held_out_lra.jsonl have others. With --published, those
of Long Range Arena's recipe: 98,000 long expressions in train.jsonl, of which the recipe keeps 2,000 for validation,
and 2,000 in test.jsonl. Needs only Python.
"""

import argparse
import hashlib
import json
from pathlib import Path

from expressions import random_expressions

SHORT = {"lengths": range(16, 513), "bins": 8}
# As the tokenizers name them: "[MAX" is MAX, and the tokenizer of 2021 has X for "]".
SYMBOLS = [*"0123456789", "MAX", "MED", "MIN", "SM"]
SYMBOLS_2021 = [*"0123456789", "X", "[MAX", "[MED", "[MIN", "[SM"]

Rows = list[tuple[str, str]]


def demo_data(held_out_only: bool) -> dict[str, Rows]:
    first = random_expressions(5500, seed=1, **SHORT)
    held_out = {"held_out_short": first[5000:], "held_out_lra": random_expressions(200, seed=2)}
    held_out["held_out"] = held_out["held_out_short"] + held_out["held_out_lra"]
    if held_out_only:
        return held_out
    rows = first[:5000] + random_expressions(60_000, seed=2021, **SHORT) + random_expressions(30_000, seed=2022)
    left_out = {*held_out["held_out"]}
    train = [row for row in dict.fromkeys(rows) if row not in left_out]
    return {"train": train, **held_out}


def published_data() -> dict[str, Rows]:
    rows = random_expressions(100_000, seed=2020)
    return {"train": rows[:98_000], "test": rows[98_000:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files are written")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--published", action="store_true", help="the data of Long Range Arena's recipe")
    which.add_argument("--held-out-only", action="store_true", help="no train.jsonl, which takes 2 minutes")
    given = parser.parse_args()

    given.folder.mkdir(parents=True, exist_ok=True)
    vocabulary = SYMBOLS if given.published else SYMBOLS_2021
    (given.folder / "vocabulary.txt").write_text("".join(f"{symbol}\n" for symbol in vocabulary))
    data = published_data() if given.published else demo_data(given.held_out_only)
    for name, rows in reversed(data.items()):  # train.jsonl is the last, and marks that all are there
        content = "".join(json.dumps({"label": value, "text": text}) + "\n" for text, value in rows).encode()
        part = given.folder / f"{name}.part"
        part.write_bytes(content)
        part.rename(given.folder / f"{name}.jsonl")
        print(f"{hashlib.sha256(content).hexdigest()}  {name}.jsonl, {len(rows)} expressions")


if __name__ == "__main__":
    main()

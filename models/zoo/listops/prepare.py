#!/usr/bin/env python3
"""Makes ListOps training and held-out files for longshort-train from the folder with gen.py and the given splits.

Training data: short_train.tsv and more expressions of gen.py, short (16 to 512 tokens, evenly spread lengths) and long
(Long Range Arena's 501 to 1999). Held out: short_test.tsv and lra_test.tsv, whose expressions are not in the training
data.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SHORT = ["--min-len", "15", "--max-len", "513", "--spread", "8"]
LONG = ["--min-len", "500", "--max-len", "2000"]


def read_rows(path: Path) -> list[tuple[str, str]]:
    """Expressions and values of a file with the header Source, Target."""
    header, *lines = path.read_text().splitlines()
    if header != "Source\tTarget":
        raise SystemExit(f"{path}: the first line is {header!r}, not Source, tab, Target")
    rows = []
    for line in lines:
        source, target = line.split("\t")
        rows.append((source, target))
    return rows


def generate(generator: Path, count: int, seed: int, shape: list[str]) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "made.tsv"
        command = [sys.executable, str(generator), "--split", f"{file}={count}", "--seed", str(seed), *shape]
        subprocess.run(command, check=True)
        return read_rows(file)


def write_examples(path: Path, rows: list[tuple[str, str]]) -> str:
    """Writes JSON Lines and returns their SHA-256."""
    content = "".join(json.dumps({"label": value, "text": text}) + "\n" for text, value in rows).encode()
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder with gen.py, short_train.tsv, short_test.tsv, lra_test.tsv")
    parser.add_argument("out", type=Path, help="folder to write train.jsonl, held_out*.jsonl, vocabulary.txt into")
    parser.add_argument("--short", type=int, default=60000, help="short expressions to make (default: %(default)s)")
    parser.add_argument("--long", type=int, default=30000, help="long expressions to make (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=2021, help="seed of the generator (default: %(default)s)")
    given = parser.parse_args()

    held_out_short = read_rows(given.source / "short_test.tsv")
    held_out_long = read_rows(given.source / "lra_test.tsv")
    held_out = {text for text, _ in held_out_short + held_out_long}
    made = generate(given.source / "gen.py", given.short, given.seed, SHORT)
    made += generate(given.source / "gen.py", given.long, given.seed + 1, LONG)
    rows = read_rows(given.source / "short_train.tsv") + made
    train = [row for row in dict.fromkeys(rows) if row[0] not in held_out]

    given.out.mkdir(parents=True, exist_ok=True)
    words = {word for text, _ in train for word in text.split()}
    # As the tokenizer listops_2021 names them.
    symbols = sorted("X" if word == "]" else word for word in words)
    (given.out / "vocabulary.txt").write_text("".join(f"{symbol}\n" for symbol in symbols))
    files = {"train": train, "held_out_short": held_out_short, "held_out_lra": held_out_long,
             "held_out": held_out_short + held_out_long}  # fmt: skip
    for name, part in files.items():
        digest = write_examples(given.out / f"{name}.jsonl", part)
        print(f"{digest}  {name}.jsonl, {len(part)} expressions")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures simple rules on the held-out expressions: the most common value, and the most common value for each first
operator of an expression. Needs only Python.
"""

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path


def read_examples(path: Path) -> list[tuple[str, str]]:
    """First operator and value of each expression."""
    examples = [json.loads(line) for line in path.read_text().splitlines()]
    return [(example["text"].split()[0], example["label"]) for example in examples]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that prepare.py wrote")
    given = parser.parse_args()

    train = read_examples(given.data / "train.jsonl")
    commonest, _ = Counter(value for _, value in train).most_common(1)[0]
    of_operator: dict[str, Counter[str]] = defaultdict(Counter)
    for operator, value in train:
        of_operator[operator][value] += 1
    for name in ("held_out_short", "held_out_lra"):
        examples = read_examples(given.data / f"{name}.jsonl")
        always = sum(value == commonest for _, value in examples)
        by_operator = sum(value == of_operator[operator].most_common(1)[0][0] for operator, value in examples)
        print(
            f"{name}: always {commonest} {always / len(examples):.4f}, "
            f"commonest of the first operator {by_operator / len(examples):.4f} of {len(examples)}"
        )


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Computes the accuracy of `longshort classify --json`.

Reads the client's answers from standard input. The correct label of an image is the name of its folder. Those of texts
are in the field "label" of the JSON Lines file given with --labels, in the order of the answers.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path, PurePath


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("title", help="name of the held-out data")
    parser.add_argument("--labels", type=Path, help="JSON Lines file of the classified texts")
    given = parser.parse_args()

    answers = [json.loads(line) for line in sys.stdin]
    if given.labels:
        labels = [json.loads(line)["label"] for line in given.labels.read_text().splitlines()]
    else:
        labels = [PurePath(answer["name"]).parent.name for answer in answers]
    if not answers or len(answers) != len(labels):
        raise SystemExit(f"{given.title}: {len(answers)} answers to {len(labels)} items")
    right: Counter[str] = Counter()
    for answer, label in zip(answers, labels, strict=True):
        if "error" in answer:
            raise SystemExit(f"{answer['name']}: {answer['error']['message']}")
        right[label] += answer["classification"]["classes"][0]["label"] == label
    print(f"{given.title}: accuracy {right.total() / len(labels):.4f}, {right.total()} of {len(labels)}")
    of_label = Counter(labels)
    print("  " + ", ".join(f"{label} {right[label] / of_label[label]:.2f}" for label in sorted(of_label)))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Computes the accuracy of `longshort classify --json --top-k=54`, also for texts in two languages.

Reads the client's answers from standard input, and the labels from a JSON Lines file. A label such as
"Danish + Polish" says that seven tenths of the text are Danish and three tenths Polish.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, help="JSON Lines file of the classified texts")
    given = parser.parse_args()
    labels = [json.loads(line)["label"] for line in given.texts.read_text().splitlines()]
    answers = [json.loads(line)["classification"]["classes"] for line in sys.stdin]
    shares = [{one["label"]: one.get("probability", 0.0) for one in answer} for answer in answers]
    report(given.texts.stem, labels, shares)


def report(title: str, labels: list[str], answers: list[dict[str, float]]) -> None:
    """Prints how many texts have the right language as the likeliest, and the commonest confusions."""
    likeliest = [sorted(answer, key=answer.__getitem__, reverse=True)[:2] for answer in answers]
    pairs = [label.split(" + ") for label in labels]
    right = sum(names[0] == first for (first, *_), names in zip(pairs, likeliest, strict=True))
    line = f"{title}: accuracy {right / len(labels):.4f}, {right} of {len(labels)}"
    confident = [
        (answer[names[0]], pair[0] == names[0]) for pair, names, answer in zip(pairs, likeliest, answers, strict=True)
    ]
    line += f", calibration error {calibration_error(confident):.4f}"
    if all(len(pair) == 2 for pair in pairs):
        both = sum(set(pair) == set(names) for pair, names in zip(pairs, likeliest, strict=True))
        seconds = sorted(answer[pair[1]] for pair, answer in zip(pairs, answers, strict=True))
        line += f"; both languages {both / len(labels):.4f}, the second's median share {seconds[len(seconds) // 2]:.2f}"
    print(line)
    wrong = Counter(
        f"{first} as {names[0]}" for (first, *_), names in zip(pairs, likeliest, strict=True) if names[0] != first
    )
    print("  " + ", ".join(f"{confusion} {count}" for confusion, count in wrong.most_common(8)), flush=True)


def calibration_error(answers: list[tuple[float, bool]]) -> float:
    """The expected calibration error: the difference of mean probability and accuracy in 15 equal ranges of the
    likeliest probability, weighted by the number of answers.
    """
    ranges: dict[int, list[tuple[float, bool]]] = {}
    for probability, is_right in answers:
        ranges.setdefault(min(int(probability * 15), 14), []).append((probability, is_right))
    differences = (abs(sum(probability - is_right for probability, is_right in one)) for one in ranges.values())
    return sum(differences) / len(answers)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures two bags of bytes on the same texts: naive Bayes and logistic regression over the counts of all
sequences of 1 to 3 bytes, trained on the same train.jsonl. Needs scikit-learn (models/zoo/requirements.txt).
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import shares
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import MultinomialNB

PIECE = 5000  # texts that are counted at once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path, help="train.jsonl")
    parser.add_argument("texts", type=Path, nargs="+", help="files to measure on")
    given = parser.parse_args()

    counts = HashingVectorizer(
        analyzer="char", ngram_range=(1, 3), lowercase=False, alternate_sign=False, norm=None, n_features=2**18
    )
    bayes = MultinomialNB(alpha=0.01)
    regression = SGDClassifier(loss="log_loss", alpha=1e-6, average=True, random_state=1)
    lines = given.train.read_text().splitlines()
    classes = sorted({json.loads(line)["label"] for line in lines})
    np.random.default_rng(1).shuffle(lines)
    for first in range(0, len(lines), PIECE):
        texts, labels = parsed(lines[first : first + PIECE])
        matrix = counts.transform(texts)
        bayes.partial_fit(matrix, labels, classes=classes)
        regression.partial_fit(frequencies(matrix), labels, classes=classes)
    for path in given.texts:
        texts, labels = parsed(path.read_text().splitlines())
        matrix = counts.transform(texts)
        shares.report(f"naive Bayes, {path.stem}", labels, named(bayes.predict_proba(matrix), classes))
        shares.report(f"regression, {path.stem}", labels, named(regression.predict_proba(frequencies(matrix)), classes))


def parsed(lines: list[str]) -> tuple[list[str], list[str]]:
    """Texts with a character for each byte, and labels."""
    examples = [json.loads(line) for line in lines]
    return [one["text"].encode().decode("latin-1") for one in examples], [one["label"] for one in examples]


def frequencies(matrix: Any) -> Any:
    """Damped counts of length 1, so that long texts weigh as much as short ones."""
    matrix = matrix.sqrt()
    norms = np.sqrt(matrix.multiply(matrix).sum(axis=1)).A1
    return matrix.multiply(1 / norms[:, None]).tocsr()


def named(probabilities: Any, classes: list[str]) -> list[dict[str, float]]:
    return [dict(zip(classes, row.tolist(), strict=True)) for row in probabilities]


if __name__ == "__main__":
    main()

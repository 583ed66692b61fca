#!/usr/bin/env python3
"""Measures simple models on the same split: TF-IDF of words and word pairs with logistic regression, and the most
common class. Needs scikit-learn (models/zoo/requirements.txt).
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline


def read_examples(path: Path) -> tuple[list[str], list[str]]:
    """Texts and labels."""
    examples = [json.loads(line) for line in path.read_text().splitlines()]
    return [example["text"] for example in examples], [example["label"] for example in examples]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that prepare.py wrote")
    given = parser.parse_args()

    train_texts, train_labels = read_examples(given.data / "train.jsonl")
    texts, labels = read_examples(given.data / "held_out.jsonl")
    commonest, _ = Counter(train_labels).most_common(1)[0]
    print(f"commonest class ({commonest}): {labels.count(commonest) / len(labels):.4f}")
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    model = make_pipeline(vectorizer, LogisticRegression(C=10, max_iter=2000))
    model.fit(train_texts, train_labels)
    print(f"TF-IDF + logistic regression: {model.score(texts, labels):.4f} of {len(texts)}")


if __name__ == "__main__":
    main()

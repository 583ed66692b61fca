#!/usr/bin/env python3
"""Makes the files of Long Range Arena's Text from the archive aclImdb.tar.gz or .tar.xz of the IMDb reviews.

train.jsonl and test.jsonl have 25,000 reviews each. For the paper's Table 2, test_insert.jsonl has 10 random
punctuation marks at 10 random places of each review of the test, and test_delete.jsonl has no punctuation.
Needs only Python.
"""

import argparse
import json
import random
import string
import tarfile
from collections.abc import Iterable
from pathlib import Path

INSERTED = 10
SEED = 2020


def read_reviews(archive: Path) -> dict[str, list[dict[str, str]]]:
    found: dict[str, dict[str, str]] = {"train": {}, "test": {}}
    with tarfile.open(archive) as files:
        for file in files:
            parts = Path(file.name).parts
            if len(parts) == 4 and parts[1] in found and parts[2] in ("neg", "pos") and parts[3].endswith(".txt"):
                found[parts[1]]["/".join(parts[2:])] = files.extractfile(file).read().decode()
    reviews = {}
    for part, texts in found.items():
        rows = [{"label": name.split("/")[0], "text": texts[name]} for name in sorted(texts)]
        random.Random(SEED).shuffle(rows)
        reviews[part] = rows
    return reviews


def with_insertions(text: str, draw: random.Random) -> str:
    for _ in range(INSERTED):
        place = draw.randint(0, len(text))
        text = text[:place] + draw.choice(string.punctuation) + text[place:]
    return text


def without_punctuation(text: str) -> str:
    return text.translate(dict.fromkeys(map(ord, string.punctuation)))


def write(path: Path, rows: Iterable[dict[str, str]]) -> None:
    part = path.with_suffix(".part")
    with part.open("w") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    part.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("folder", type=Path, help="where the files are written")
    given = parser.parse_args()

    reviews = read_reviews(given.archive)
    for part, rows in reviews.items():
        if len(rows) != 25000:
            raise SystemExit(f"{given.archive}: {len(rows)} reviews in {part}, not 25000")
    test = reviews["test"]
    draw = random.Random(SEED)
    given.folder.mkdir(parents=True, exist_ok=True)
    write(given.folder / "test_insert.jsonl", ({**row, "text": with_insertions(row["text"], draw)} for row in test))
    write(given.folder / "test_delete.jsonl", ({**row, "text": without_punctuation(row["text"])} for row in test))
    write(given.folder / "test.jsonl", test)
    write(given.folder / "train.jsonl", reviews["train"])  # last: marks that all are there


if __name__ == "__main__":
    main()

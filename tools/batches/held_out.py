#!/usr/bin/env python3
"""Writes the held-out data of enwiki and languages in the formats of corpora: Parquet and WARC."""

import argparse
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from warcio.warcwriter import WARCWriter

DATE = "2026-01-01T00:00:00Z"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="the held-out part of enwiki_p10.xml")
    parser.add_argument("texts", type=Path, help="held_out.jsonl, as languages/prepare.py makes it")
    parser.add_argument("out", type=Path, help="folder to write enwiki.* and languages.* into")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)

    # One document of bytes, because the held-out part may begin in the middle of a character.
    text = given.text.read_bytes()
    pq.write_table(
        pa.table({"name": ["held-out"], "text": pa.array([text], pa.binary())}), given.out / "enwiki.parquet"
    )
    write_warc(given.out / "enwiki.warc.gz", [("held-out", text)])

    texts = [json.loads(line) for line in given.texts.read_text().splitlines()]
    # The results also have a column "label".
    table = pa.table({"text": [one["text"] for one in texts], "truth": [one["label"] for one in texts]})
    pq.write_table(table, given.out / "languages.parquet")
    write_warc(given.out / "languages.warc.gz", named(texts))


def named(texts: Iterable[dict[str, str]]) -> Iterator[tuple[str, bytes]]:
    """Each text with a name that contains its label, like a URL."""
    for place, one in enumerate(texts):
        yield f"{quote(one['label'])}/{place}", one["text"].encode()


def write_warc(path: Path, documents: Iterable[tuple[str, bytes]]) -> None:
    """Writes records of converted text, like those of Common Crawl's WET files."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for name, content in documents:
            record = writer.create_warc_record(
                f"urn:{name}",
                "conversion",
                payload=io.BytesIO(content),
                length=len(content),
                warc_content_type="text/plain",
                warc_headers_dict={"WARC-Date": DATE},
            )
            writer.write_record(record)


if __name__ == "__main__":
    main()

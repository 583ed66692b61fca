"""The program of a FooterProbe: it answers each footer with a byte, or ends. It imports nothing of this package."""

from __future__ import annotations

import contextlib
import resource
import sys

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

LENGTH_BYTES = 4
# What a run reads of a column chunk.
CHUNK_FIELDS = (
    "compression",
    "data_page_offset",
    "dictionary_page_offset",
    "has_dictionary_page",
    "num_values",
    "total_compressed_size",
    "total_uncompressed_size",
)


def parse(footer: bytes) -> None:
    """Reads everything that a run may read of a footer. Errors other than a lack of memory are left to the run."""
    with contextlib.suppress(pa.ArrowException, LookupError, OSError, TypeError, ValueError):
        metadata = pq.read_metadata(pa.BufferReader(footer))
        metadata.schema.to_arrow_schema()
        for place in range(metadata.num_row_groups):
            group = metadata.row_group(place)
            for column in range(group.num_columns):
                chunk = group.column(column)
                for name in CHUNK_FIELDS:
                    getattr(chunk, name)


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    stdout.write(b".")
    stdout.flush()
    while length := stdin.read(LENGTH_BYTES):
        parse(stdin.read(int.from_bytes(length, "little")))
        stdout.write(b".")
        stdout.flush()


if __name__ == "__main__":
    main()

"""Reads inputs and writes results as a run does, without servers, in a process whose memory has a hard limit.

For each path on standard input it prints a line of JSON: rows, errors, CPU seconds, and the most bytes of memory.
"""

from __future__ import annotations

import contextlib
import json
import re
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any
from unittest import mock

from longshort.batch.inputs import reading, sources
from longshort.batch.inputs.footers import FooterProbe
from longshort.batch.inputs.memory import return_freed_blocks
from longshort.batch.inputs.rows import Columns
from longshort.batch.inputs.shards import Position, ShardLimits, cut
from longshort.batch.output import shard_files
from longshort.batch.output.result_columns import columns
from longshort.batch.report.failures import Refused

LIMIT_BYTES = 1 << 30
COLUMNS = columns("score", 0)


class Nowhere:
    """An output folder without a place."""

    def put(self, name: str, content: bytes) -> None: ...


def read(path: str, found: dict[str, Any]) -> None:
    (source,) = sources.sources_of(sources.find([path]))
    (reader,) = reading.open_readers([source], Columns())
    outputs: list[shard_files.Output] = []
    for format in shard_files.OUTPUT_FORMATS:
        outputs.append(shard_files.Output(Nowhere(), format, "score", 0, reader.carried))  # type: ignore[arg-type]
    for shard in cut(0, reader.rows(Position()), ShardLimits()):
        rows = reader.parse(shard.rows)
        found["rows"] += len(rows.rows)
        found["errors"] += [f"{row.error.code.name}: {row.error.message}" for row in rows.rows if row.error is not None]
        scores = [None if row.error else dict.fromkeys(COLUMNS.names) for row in rows.rows]
        for one in outputs:
            one.write(shard.name, rows, scores)  # type: ignore[arg-type]


def peak() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) << 10


def main() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
    return_freed_blocks()
    # The footers of all files are parsed by one process. To begin one takes as long as to read hundreds of small files.
    with FooterProbe() as probe, mock.patch.object(reading, "FooterProbe", lambda: contextlib.nullcontext(probe)):
        for line in sys.stdin:
            Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
            began = time.process_time()
            found: dict[str, Any] = {"rows": 0, "errors": [], "refused": "", "failed": ""}
            try:
                read(line[:-1], found)
            except Refused as error:
                found["refused"] = str(error)
            except Exception:
                found["failed"] = traceback.format_exc()
            print(json.dumps(found | {"seconds": time.process_time() - began, "peak": peak()}), flush=True)


if __name__ == "__main__":
    main()
